"""Runs on disk: folders, checkpoints, params and metrics; trackers, and runs in buckets."""
