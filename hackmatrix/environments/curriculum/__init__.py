"""Curricula: levels of starting positions, and an agent's advance through them."""
