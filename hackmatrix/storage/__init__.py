"""Atomic file writes, checksummed folders and the compilation cache."""
