"""Learning: PPO and PQN, a run under way, its settings, its metrics and alarms, imitation."""
