"""Speed of the environment, measured so that nothing can be optimised away."""
