"""Runs on disk: their folders, checkpoints, params and metrics."""
