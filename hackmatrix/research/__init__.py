"""Findings about agents: evaluation, comparison, tuning, data sets, formats, speed."""
