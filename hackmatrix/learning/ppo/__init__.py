"""PPO on any environment, compiled end to end: settings, rollouts, advantages, gradient steps."""
