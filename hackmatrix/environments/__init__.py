"""Environments by id: HackMatrix, classic control and user-defined ones; and wrappers."""
