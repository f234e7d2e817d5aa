"""The vocabulary and the tables of the game: names and numbers, no logic (`docs/rules.md`)."""
