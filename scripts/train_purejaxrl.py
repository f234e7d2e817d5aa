"""`hackmatrix train` under the name of the original's script, with the original's settings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a clone needs no installation

from hackmatrix.cli.train import script

sys.exit(script("hackmatrix train"))
