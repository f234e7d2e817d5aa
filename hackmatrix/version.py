"""The version of the package, and that of the game."""

__version__ = "0.1.0"

ENVIRONMENT_ID = "HackMatrix-v1"  # its number is that of the rules and of the observation
