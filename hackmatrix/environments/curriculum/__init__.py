"""Curricula: levels of starts from which an agent trains, and how it rises through them."""
