"""PPO with action masks: configuration, rollout, update, metrics and the loop around them."""
