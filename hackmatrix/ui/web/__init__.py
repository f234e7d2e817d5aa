"""Shared by the pages of the game and of the monitor: access, serving, base style."""
