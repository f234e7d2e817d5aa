"""The observation layout `tactical`: what a player can foresee, in plain Python and in JAX."""
