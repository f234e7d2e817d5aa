"""The game as a process: reads and writes one JSON object a line (`docs/serve.md`)."""
