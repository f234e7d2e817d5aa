"""The versions of the package and of the game, and the project's address."""

__version__ = "0.1.0"
REPOSITORY = "https://github.com/hackmatrix/hackmatrix"

ENVIRONMENT_ID = "HackMatrix-v1"  # the number is the version of the rules and the observation
TOGETHER = "+"  # joins the ids of several environments into one
