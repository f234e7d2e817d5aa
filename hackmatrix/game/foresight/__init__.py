"""A player's foresight: the board as seen, actions and enemies on it, the layout `tactical`."""
