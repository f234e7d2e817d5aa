"""HackMatrix: its rules in plain Python and JAX, what a player foresees, pictures, conformance."""
