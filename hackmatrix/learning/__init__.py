"""How an agent learns: PPO, the run around it, its settings and reports, and imitation."""
