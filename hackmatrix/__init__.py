"""HackMatrix, a roguelike: an exact Python engine, a batched JAX engine and a PPO trainer."""

__version__ = "0.1.0"
