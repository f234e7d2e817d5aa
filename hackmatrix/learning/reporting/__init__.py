"""Metrics with the ranges beyond which they raise alarms, other alarms, and the console display."""
