"""`python -m hackmatrix` is the same as `hackmatrix`."""

import sys

from hackmatrix.cli.main import main

sys.exit(main())
