"""Benchmarks of `hackmatrix bench`: speed and memory of the environment and of training."""
