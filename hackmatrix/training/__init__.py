"""A run under way: where it begins, the loop, what is due, reported and kept."""
