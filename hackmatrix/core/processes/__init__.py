"""Processes of this package: starting, supervision, and training in several."""
