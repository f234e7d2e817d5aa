"""A player's foresight: the board as seen, what actions do to it, and the layout `tactical`."""
