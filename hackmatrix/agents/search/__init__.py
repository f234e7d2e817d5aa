"""Tree search at play time, on games that are made up from what the player sees."""
