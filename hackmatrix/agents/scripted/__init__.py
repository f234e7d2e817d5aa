"""Players in plain Python that see only what a player sees; importable without JAX and NumPy."""
