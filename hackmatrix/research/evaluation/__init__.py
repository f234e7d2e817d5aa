"""Evaluation of agents: games with fixed seeds, statistics and reports."""
