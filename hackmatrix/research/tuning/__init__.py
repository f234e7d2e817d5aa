"""Searches for settings of training: grid, random and Optuna's samplers."""
