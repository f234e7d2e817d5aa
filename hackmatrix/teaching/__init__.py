"""Expert iteration: a tree search teaches the network that it searches with."""
