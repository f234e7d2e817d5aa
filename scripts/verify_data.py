"""`hackmatrix data verify` under the name of the original's script."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a clone needs no installation

from hackmatrix.cli.data import script

sys.exit(script("verify_data"))
