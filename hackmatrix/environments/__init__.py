"""Environments by name: HackMatrix, classic control, and a user's own."""
