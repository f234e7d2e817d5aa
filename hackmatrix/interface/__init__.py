"""What an environment and a metric are: the types that all other packages share."""
