"""Accelerators that are not here: programs compiled for them, estimates of their speed."""
