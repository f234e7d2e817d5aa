"""Training runs: their initial state, the loop, schedule, reports and checkpoints."""
