"""Several processes that train as one: the parent of each, how they meet, and who gives orders."""
