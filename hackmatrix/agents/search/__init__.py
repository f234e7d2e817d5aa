"""Search at play time, on games made up from what the player sees."""
