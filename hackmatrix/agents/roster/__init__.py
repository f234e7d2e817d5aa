"""The agents by name: as players of many games, and asked of one position."""
