"""Accelerators that are not here: programs compiled for them, and estimates of their speed."""
