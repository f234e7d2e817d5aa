"""MaskablePPO of Stable-Baselines3 on the game; needs the extra `sb3`."""
