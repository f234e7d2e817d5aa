"""Games of agents on disk: recorded, replayed, checked, exported, and learned from."""
