"""The game as a process: one JSON object a line in, one out (`docs/serve.md`)."""
