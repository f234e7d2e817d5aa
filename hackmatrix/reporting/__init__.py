"""What a run reports: metrics and their healthy ranges, alarms, and the display of a terminal."""
