"""The devices of JAX: the mesh that a program runs on, and equal shares of the games."""
