"""Who plays: networks, the scripted player, search, and the agents by name."""
