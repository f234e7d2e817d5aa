"""Params in the formats of others, and checks of what a checkpoint holds."""
