"""Runs on disk: their folders and names, and params exported for sharing."""
