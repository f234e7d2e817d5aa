"""PPO and PQN on any environment, compiled: settings, rollouts, lambda-returns, gradient steps."""
