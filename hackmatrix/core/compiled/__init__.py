"""Compiled programs on disk: their folder, their keys and their signatures."""
