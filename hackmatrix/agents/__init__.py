"""Who plays: networks, the scripted player, tree search, and the agents by name."""
