"""How well an agent plays: games with fixed seeds, statistics and reports."""
