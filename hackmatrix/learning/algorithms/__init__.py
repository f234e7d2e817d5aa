"""Learning algorithms: each owns its state, its settings and its metrics, and is one file."""
