"""The game for other programs: Gymnasium, Stable-Baselines3, Minari, a process of JSON lines."""
