"""What a player can foresee: the observation layout `tactical`, in plain Python and in JAX."""
