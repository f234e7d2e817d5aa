"""A run in progress: its start, the loop, schedules, reports and checkpoints."""
