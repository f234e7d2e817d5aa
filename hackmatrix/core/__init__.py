"""What everything else stands on.

Errors, options, files, devices, compiled programs, processes, charts.
"""
