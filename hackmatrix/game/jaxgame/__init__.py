"""The game in JAX: the files of `game/engine/` as pure functions of any number of games."""
