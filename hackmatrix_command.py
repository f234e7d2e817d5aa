"""Starts what belongs to the package `hackmatrix` beside this file, and not another of that name.

`PYTHONPATH` and the current folder may hold another package `hackmatrix`, which Python would find
first: the original's has that name. Nothing else is called like this module, so the commands begin
here. A module of the package is run by `python -P hackmatrix_command.py MODULE ARGUMENT...`.
"""

import os.path
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import hackmatrix  # noqa: F401  all that is imported from it later comes from its folder

del sys.path[0]


def main() -> int:
    """`hackmatrix`."""
    from hackmatrix.cli.main import main

    return main()


def game() -> int:
    """`hackmatrix-game`."""
    from hackmatrix.cli.serve import game_binary

    return game_binary()


if __name__ == "__main__":
    import runpy

    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__")
