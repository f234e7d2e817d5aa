"""The game in JAX: the files of `engine/` as pure functions of any number of games."""
