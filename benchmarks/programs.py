"""The worth of programs: games that enter stages with none or some, and games that are given one.

Who owns a program has played well so far, so the first table says only where games are lost. The
second says what a program is worth: from the same positions, the start of a stage without any, the
agent plays on as it is and with each program given.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command import run_command
from benchmarks.native_play import Array, games_of, play, replay
from hackmatrix.agents import shipped
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.game.engine.state import State
from hackmatrix.game.native import batch
from hackmatrix.game.native.conversion import games_from_engine, state_to_engine
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE
from hackmatrix.game.rules.tactical import START
from hackmatrix.research.bench.options import Options
from hackmatrix.research.datasets.folder import open_data_set

_FIRST = 1_600_000_000  # streams of no training run
_OWNED = slice(START["owned"], START["owned"] + len(PROGRAMS))


@dataclass(frozen=True)
class ProgramsOptions(Options):
    """The command's options."""

    agent: Path = option(shipped.PARAMS, "params of an MLP on the layout tactical")
    games: int = option(2_000, "games that it plays", at_least=1)
    data: Path | None = option(
        None, "recorded games to look at instead, of `hackmatrix data record`"
    )
    positions: int = option(200, "positions from which it plays on with programs given")
    stage: int = option(3, "stage that these positions begin", at_least=2, at_most=LAST_STAGE)


class Worth(NamedTuple):
    """What was found."""

    entered: dict[str, list[tuple[int, int]]]  # by stage: games and wins with 0, 1, 2+ programs
    none: tuple[int, int]  # positions without a program, and those won from them
    given: dict[str, float]  # by program: the share won with it

    def as_dict(self) -> dict[str, Any]:
        """The figures."""
        return self._asdict()

    def text(self) -> str:
        """The figures as two tables."""
        rows = ["stage  enters with no program, one, more (share of the games: wins)"]
        for stage, groups in self.entered.items():
            all_of_them = sum(games for games, _ in groups)
            cells = (
                f"{games / max(all_of_them, 1):6.1%}: {won / games if games else 0:6.1%}"
                for games, won in groups
            )
            rows.append(f"{stage:>5}  " + "   ".join(cells))
        number, won = self.none
        if not number:
            return "\n".join(rows)
        rows.append(f"from {number} positions without one: {won / number:.1%} won, and with")
        best = sorted(self.given.items(), key=lambda pair: -pair[1])
        return "\n".join([*rows, *(f"  {name:6} {share:6.1%}" for name, share in best)])


def measure(options: ProgramsOptions) -> Worth:
    """Plays games or looks at recorded ones, then plays from some positions with programs given.

    Raises:
        UserError: the data set is missing, or of another environment.
        DamagedError: the data set is damaged.
    """
    data = open_data_set(options.data) if options.data else None
    if data and data.facts.environment != ENVIRONMENT_ID:
        raise UserError(
            f"{data.path}: its games are of {data.facts.environment}, not {ENVIRONMENT_ID}"
        )
    number = data.facts.games if data else options.games
    games = games_of(data) if data else batch.reset(_FIRST + np.arange(number), np.zeros(number))
    owned = np.full((LAST_STAGE + 1, number), -1)
    kept = list[State]()

    def look(running: Array, records: Array, *_: Array) -> None:
        stages = number_of(records, "stage")[running]
        new = owned[stages, running] < 0
        have = batch.tactical_numbers(records[running[new]])[:, _OWNED].sum(axis=1)
        owned[stages[new], running[new]] = have
        for game in running[new][(stages[new] == options.stage) & (have == 0)]:
            if len(kept) < options.positions:
                kept.append(state_to_engine(games, game))

    won = replay(data, games, look) if data else play(options.agent, games, _FIRST, look).won
    entered = {
        str(stage): [
            (int(here.sum()), int(won[here].sum()))
            for here in (owned[stage] == 0, owned[stage] == 1, owned[stage] > 1)
        ]
        for stage in range(2, LAST_STAGE + 1)
    }
    if not kept:
        return Worth(entered, (0, 0), {})
    results = {
        program: play(options.agent, _given(kept, program), _FIRST).won
        for program in (None, *range(len(PROGRAMS)))
    }
    given = {PROGRAMS[p].name: float(won.mean()) for p, won in results.items() if p is not None}
    return Worth(entered, (len(kept), int(results[None].sum())), given)


def _given(states: list[State], program: int | None) -> Any:
    """The games of these positions, with a program; their dice are new, the same for all."""
    games = games_from_engine(states)
    games.states["dice"]["stream"] += 1
    if program is not None:
        games.states["position"]["owned"] = 1 << program
        games.states["position"]["acquired"][:, 0] = program
    return games


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "programs",
        measure,
        ProgramsOptions,
        argv,
        purpose="Measures what programs are worth to an agent, by giving them.",
        example="--agent checkpoints/my-run/final_params.npz\n      of an agent of yours",
    )


if __name__ == "__main__":
    sys.exit(main())
