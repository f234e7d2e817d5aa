"""`python -m hackmatrix` is the same as `hackmatrix`, and so is `python PATH/TO/hackmatrix`."""

import sys
from pathlib import Path

if not __package__:  # by its path: the folder of the package, not the one above, is on sys.path
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from hackmatrix.cli.main import main

sys.exit(main())
