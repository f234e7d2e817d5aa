"""Networks, the masked distribution over actions, and policies loaded from a file."""
