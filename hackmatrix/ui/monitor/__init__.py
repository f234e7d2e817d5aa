"""A run's metrics, live, in a terminal and as a page (`docs/monitor.md`). Imports no JAX."""
