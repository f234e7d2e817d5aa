"""Shared by the pages of the game and of the monitor: who may talk to them, serving, base style."""
