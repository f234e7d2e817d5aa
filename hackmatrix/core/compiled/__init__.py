"""Compiled programs on disk: their folder and its size."""
