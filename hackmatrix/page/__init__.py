"""The page: play the game, watch an agent, replay and export games (`docs/page.md`)."""
