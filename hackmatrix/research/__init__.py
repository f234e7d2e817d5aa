"""What is measured of agents and runs.

Evaluation, comparison, tuning, data sets, formats, speed.
"""
