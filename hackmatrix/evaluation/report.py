"""What an evaluation says: a table for people, a dictionary for programs."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hackmatrix.evaluation.games import Tally
from hackmatrix.evaluation.statistics import Estimate, estimate
from hackmatrix.rules.actions import ACTION_NAMES, FIRST_PROGRAM, NUM_ACTIONS
from hackmatrix.rules.board import CELLS, NEIGHBOURS
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.observation import BYTE, ENEMY, RECORD_SIZE

ENEMY_TYPE_BITS = 7


class Report(NamedTuple):
    """Results of an evaluation; None where the environment does not tell."""

    episodes: int
    returns: Estimate
    stages_cleared: Estimate | None  # 0..8
    win_rate: Estimate | None
    length: Estimate  # actions of a game
    mean_score: float | None
    truncated: int  # games cut off
    program_use: dict[str, float]  # uses in a game, by program
    death_causes: dict[str, int]  # see `death_causes`

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "episodes": self.episodes,
            **_estimate("mean_return", "mean_return_ci", self.returns),
            **_estimate("mean_stages_cleared", "stages_cleared_ci", self.stages_cleared),
            **_estimate("win_rate", "win_rate_ci", self.win_rate),
            **_estimate("mean_length", "length_ci", self.length),
            "mean_score": self.mean_score,
            "truncated": self.truncated,
            "program_use": self.program_use,
            "death_causes": self.death_causes,
        }

    def table(self) -> str:
        """Some lines of text; of other environments without what only HackMatrix has."""
        rows = {
            "games": f"{self.episodes:,}",
            "return": self.returns,
            "stages cleared": self.stages_cleared,
            "win rate": self.win_rate,
            "length": self.length,
            "score": None if self.mean_score is None else f"{self.mean_score:.1f}",
            "cut off": f"{self.truncated:,}",
        }
        if self.death_causes:
            rows["programs a game"] = _listed(self.program_use, "{:.2f}")
            rows["deaths by"] = _listed(self.death_causes, "{:,}")
        return "\n".join(f"{name:<16}{value}" for name, value in rows.items() if value is not None)


def summarise(tally: Tally) -> Report:
    """The report on a tally of games (NumPy arrays)."""
    stage, won, score = tally.stage, tally.won, tally.score
    cleared, program_use, causes = None, {}, {}
    if stage is not None and won is not None and _is_hackmatrix(tally):
        cleared = stage - 1 + won
        uses = tally.actions[:, FIRST_PROGRAM:].mean(axis=0)
        program_use = dict(zip(ACTION_NAMES[FIRST_PROGRAM:], map(float, uses), strict=True))
        causes = death_causes(tally.last[tally.ended & ~won])
    return Report(
        episodes=len(tally.returns),
        returns=estimate(np.asarray(tally.returns)),
        stages_cleared=None if cleared is None else estimate(np.asarray(cleared)),
        win_rate=None if won is None else estimate(np.asarray(won)),
        length=estimate(np.asarray(tally.length)),
        mean_score=None if score is None else float(score.mean()),
        truncated=int((~tally.ended).sum()),
        program_use=program_use,
        death_causes=causes,
    )


def _is_hackmatrix(tally: Tally) -> bool:
    shapes = [getattr(array, "shape", ())[1:] for array in (tally.actions, tally.last)]
    return shapes == [(NUM_ACTIONS,), (RECORD_SIZE,)]


def death_causes(last: NDArray[np.uint8]) -> dict[str, int]:
    """Counts the last observations [n, RECORD_SIZE] of lost games by what killed the player.

    A death counts for the kind of enemy next to the player, or for `several` where there are
    more kinds than one; a game that ended with the player alive was lost by an invalid action.
    """
    assert last.shape[1] == RECORD_SIZE
    causes = [kind.name.lower() for kind in EnemyType]
    counts = dict.fromkeys([*causes, "several", "invalid_action"], 0)
    for record in last:
        counts[_cause(record, causes)] += 1
    return counts


def _cause(record: NDArray[np.uint8], causes: list[str]) -> str:
    if record[BYTE["hp"]] > 0:
        return "invalid_action"
    enemies = record[ENEMY : ENEMY + CELLS] & ENEMY_TYPE_BITS
    kinds = {int(enemies[cell]) for cell in NEIGHBOURS[record[BYTE["cell"]]]} - {0}
    return causes[kinds.pop() - 1] if len(kinds) == 1 else "several"


def _estimate(mean: str, interval: str, estimate: Estimate | None) -> dict[str, Any]:
    if estimate is None:
        return {mean: None, interval: None}
    return {mean: estimate.mean, interval: [estimate.low, estimate.high]}


def _listed(values: dict[str, Any], form: str) -> str:
    used = sorted((name for name in values if values[name]), key=lambda name: -values[name])
    return "  ".join(f"{name} {form.format(values[name])}" for name in used) or "-"
