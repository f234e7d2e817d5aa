"""Agents: networks, the masked distribution over actions, and params loaded from a file."""
