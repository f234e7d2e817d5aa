"""Recorded games of the original against the engine (`docs/conformance.md`)."""
