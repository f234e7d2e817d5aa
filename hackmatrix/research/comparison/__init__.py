"""Runs against runs: interquartile means over seeds, at equal steps and at equal seconds."""
