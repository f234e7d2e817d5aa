"""`hackmatrix sb3 watch` under the name that other documents have for it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a clone needs no installation

from hackmatrix.cli.scripts import run

if __name__ == "__main__":  # processes that it starts import this file too
    sys.exit(run("scripts/watch_trained_agent.py"))
