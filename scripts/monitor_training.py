"""`hackmatrix monitor` under the name that other trainers' documents have for it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a clone needs no installation

from hackmatrix.cli.main import main

sys.exit(main(["monitor", *sys.argv[1:]]))
