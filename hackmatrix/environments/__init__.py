"""Environments by id: HackMatrix, classic control, and those of users; wrappers around them."""
