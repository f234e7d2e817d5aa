"""Metrics with their healthy ranges, alarms, and the console display."""
