"""Learning: the algorithms, a run under way, its settings, its metrics and alarms."""
