"""Imitation: a network learns from recorded games, and from its own search."""
