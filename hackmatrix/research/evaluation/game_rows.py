"""A row for each game of an evaluation, in dictionaries and in a CSV file."""

import csv
import io
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from hackmatrix.core.errors import UserError, in_words
from hackmatrix.core.files import write_atomically
from hackmatrix.environments.interface.report import Column
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.research.evaluation.accounts import Account
from hackmatrix.research.evaluation.limits import Limits

Rows = list[dict[str, Any]]


def rows_of_accounts(accounts: Sequence[Account], limits: Limits) -> Rows:
    """The games of HackMatrix, in the order of their numbers."""
    wins = (int(account.won) for account in accounts)
    streaks = accumulate(wins, lambda so_far, won: (so_far + 1) * won)
    return [
        {
            "game": number,
            "seed": limits.seed,
            "won": account.won,
            "streak": streak,
            "stages": account.stages_cleared,
            "score": account.score,
            "return": round(account.units * UNIT, 3),
            "steps": len(account.actions),
            "ending": str(account.ending or "cut_off"),
            "killer": account.death.killer if account.death else "",
            "hits": sum(stage.hits for stage in account.stages),
            "siphonings": len(account.siphonings),
            "programs": account.programs,
            "programs_run": sum(action >= FIRST_PROGRAM for action in account.actions),
        }
        for number, (account, streak) in enumerate(
            zip(accounts, streaks, strict=True), limits.first
        )
    ]


def rows_of_columns(columns: Sequence[Column], terminated: Any, limits: Limits) -> Rows:
    """The games of any environment: the values of the columns by their titles."""
    values = {column.title.replace(" ", "_"): _of_all_games(column) for column in columns}
    return [
        {
            "game": limits.first + place,
            "seed": limits.seed,
            **{name: each[place] for name, each in values.items()},
            "cut_off": not ended,
        }
        for place, ended in enumerate(np.asarray(terminated).tolist())
    ]


def _of_all_games(column: Column) -> list[Any]:
    """The values of a column; None for games that have none."""
    values: list[Any] = np.asarray(column.values).tolist()
    if column.chosen is None:
        return values
    left = iter(values)
    return [next(left) if chosen else None for chosen in np.asarray(column.chosen).tolist()]


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "'")  # beginnings of what a spreadsheet runs


def name_in(cell: str) -> str:
    """The agent's name in a cell that `write_rows` wrote."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def write_rows(path: Path, agents: Sequence[tuple[str, Rows]]) -> None:
    """Writes the games of agents, by name, as CSV, or leaves what was there; flags are 0 or 1.

    A name that a spreadsheet would take for a formula gets an apostrophe, see `name_in`.

    Raises:
        UserError: the file can't be written.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, ["agent", *agents[0][1][0]], lineterminator="\n")
    writer.writeheader()
    for name, rows in agents:
        for row in rows:
            plain = {key: int(x) if isinstance(x, bool) else x for key, x in row.items()}
            shown = f"'{name}" if name.startswith(_FORMULA) else name
            writer.writerow({"agent": shown, **plain})
    try:
        write_atomically(path, text.getvalue().encode())
    except OSError as error:
        raise UserError(f"--games {path}: {in_words(error)}") from None
