"""Where no compiler was there at the installation, there is no native engine to test."""

from hackmatrix.game import native

if not native.available:
    collect_ignore_glob = ["test_*.py"]
