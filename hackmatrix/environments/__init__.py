"""Environments by id: HackMatrix, classic control and user-defined ones; tasks and wrappers."""
