"""A session: one player or watcher with a game, its variations, and what is shown of it."""
