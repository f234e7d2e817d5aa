"""Expert iteration: a network learns what a tree search with it has found."""
