"""Imitation of recorded games, and of the network's own tree search."""
