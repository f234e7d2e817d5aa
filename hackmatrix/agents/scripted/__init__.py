"""The scripted player, in plain Python: it sees what a player sees; no JAX, no NumPy."""
