"""Environments by id: HackMatrix, classic control, a user's own; several tasks as one; wrappers."""
