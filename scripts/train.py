"""`hackmatrix sb3 train` under the name of the original's script."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a clone needs no installation

from hackmatrix.cli.sb3 import script

if __name__ == "__main__":  # processes of games import this file too
    sys.exit(script("train"))
