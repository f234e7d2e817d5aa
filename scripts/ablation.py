"""Runs a command of `hackmatrix` with some rows of the network `player_centred` left out.

    python scripts/ablation.py board train --config raw --total-timesteps 12_000_000

Params of such a run are read by the same variant alone.
"""

import argparse
import sys
from collections.abc import Sequence

from hackmatrix.agents.networks import row_tables
from hackmatrix.agents.networks.row_tables import Joint, Symbol, View


def _without_distances(view: View) -> View:
    """Without the distances to the exit."""
    others = (j for j in view.joint if all(symbol != "exit_distance" for _, symbol in j.cells))
    return view._replace(joint=tuple(others))


def _board() -> None:
    """Only what lies on the board: no line of fire, no distances."""
    row_tables.SYMBOLS |= {
        "enemy": Symbol("enemy_type stunned", lambda e, stunned: e and 2 * e - 1 + stunned),
        "transmission": Symbol("transmission turns", lambda t, turns: t and 1 + turns),
    }
    row_tables.PLAYER = _without_distances(row_tables.PLAYER)
    row_tables.DIRECTION = _without_distances(row_tables.DIRECTION)


def _without_joint_rows(view: View) -> View:
    """Without joint rows, of which one has to stay."""
    return view._replace(joint=(Joint((((0, 0), "piece"),)),))


def _offsets() -> None:
    """Offsets alone, without rows of several cells together."""
    row_tables.PLAYER = _without_joint_rows(row_tables.PLAYER)
    row_tables.DIRECTION = _without_joint_rows(row_tables.DIRECTION)


def _one_view() -> None:
    """Without the views from where a step leads: they show the player's numbers alone."""
    row_tables.DIRECTION = _without_joint_rows(row_tables.DIRECTION)._replace(around=())


VARIANTS = {"board": _board, "offsets": _offsets, "one-view": _one_view}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(
        prog="python scripts/ablation.py", description=f"{(__doc__ or '').partition('.')[0]}."
    )
    parser.add_argument("variant", choices=VARIANTS, help="what is left")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="train ..., evaluate ...")
    chosen = parser.parse_args(argv)
    VARIANTS[chosen.variant]()
    from hackmatrix.cli.main import main as run_command  # which reads the tables

    return run_command(chosen.command)


if __name__ == "__main__":
    sys.exit(main())
