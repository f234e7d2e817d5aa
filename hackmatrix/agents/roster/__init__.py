"""The agents by name: as evaluations play many games, as the page asks about one position."""
