"""Compiled programs kept on disk: their folder, their keys and their signatures."""
