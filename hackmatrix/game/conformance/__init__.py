"""Checks the engine against recorded games of the original (`docs/conformance.md`)."""
