"""PPO on any environment, compiled end to end: rollouts, advantages, gradient steps."""
