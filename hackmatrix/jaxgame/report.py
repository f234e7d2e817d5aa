"""HackMatrix's part of an evaluation report: stages, wins, programs, causes of death."""

import numpy as np
from numpy.typing import NDArray

from hackmatrix.interface.report import Breakdown, Column, PlayedGames
from hackmatrix.rules.actions import ACTION_NAMES, FIRST_PROGRAM
from hackmatrix.rules.board import NEIGHBOURS
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.observation import CellBytes, number_of


def report(games: PlayedGames) -> list[Column | Breakdown]:
    """Columns and breakdowns of games; their final observations are compact records."""
    won, uses = games.info["won"], games.actions[:, FIRST_PROGRAM:].mean(axis=0)
    names = ACTION_NAMES[FIRST_PROGRAM:]
    lost = games.terminated & ~won
    return [
        Column(
            "stages cleared",
            "mean_stages_cleared",
            games.info["stage"] - 1 + won,
            "stages_cleared_ci",
        ),
        Column("win rate", "win_rate", won),
        Column("score", "mean_score", games.info["score"]),
        Breakdown(
            "programs a game",
            "program_use",
            dict(zip(names, map(float, uses), strict=True)),
            form=".2f",
        ),
        Breakdown(
            "deaths by", "death_causes", death_causes(games.final_observation[lost]), form=",.0f"
        ),
    ]


def death_causes(last: NDArray[np.uint8]) -> dict[str, float]:
    """Counts the last observations [n, RECORD_SIZE] of lost games by what killed the player.

    A death is attributed to the kind of enemy next to the player, or to `several` if there is more
    than one kind; a game that ended with the player alive was lost by an invalid action.
    """
    causes = [kind.name.lower() for kind in EnemyType]
    counts: dict[str, float] = dict.fromkeys([*causes, "several", "invalid_action"], 0)
    for record in last:
        counts[_cause(record, causes)] += 1
    return counts


def _cause(record: NDArray[np.uint8], causes: list[str]) -> str:
    if number_of(record, "hp") > 0:
        return "invalid_action"
    enemies = CellBytes.of(record).field("enemy_type")  # type + 1, 0 for none
    kinds = {int(enemies[cell]) for cell in NEIGHBOURS[number_of(record, "cell")]} - {0}
    return causes[kinds.pop() - 1] if len(kinds) == 1 else "several"
