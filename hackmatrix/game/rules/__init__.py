"""The game's names, numbers and tables; no logic (`docs/rules.md`)."""
