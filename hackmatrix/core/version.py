"""The versions of the package and of the game."""

__version__ = "0.1.0"

ENVIRONMENT_ID = "HackMatrix-v1"  # the number is the version of the rules and the observation
TOGETHER = "+"  # joins the ids of several environments into one
