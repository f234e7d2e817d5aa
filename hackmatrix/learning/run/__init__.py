"""A run under way: what it continues, the loop, what is due when, reports and checkpoints."""
