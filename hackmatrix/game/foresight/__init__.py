"""A player's foresight: the observation layout `tactical`, in plain Python and in JAX."""
