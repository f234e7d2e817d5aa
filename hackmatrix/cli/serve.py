"""`hackmatrix serve`: the game as a process that speaks JSON lines."""

from hackmatrix.bridge.serve import run


def main(argv: list[str]) -> int:
    """Serves stdin until it ends."""
    return run(argv, "hackmatrix serve")
