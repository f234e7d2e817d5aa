"""Statistics of accounts of many games of HackMatrix: stages, deaths, programs, siphonings."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.research.evaluation.accounts import Account, Death, Siphoning, StageAccount
from hackmatrix.research.evaluation.statistics import estimate
from hackmatrix.research.evaluation.text_table import TextTable

KINDS = tuple(kind.name.lower() for kind in EnemyType)
_ENTRY = ("hp", "enemies", "siphons", "credits", "energy", "programs")

Rows = list[dict[str, Any]]


class Findings(NamedTuple):
    """Facts of an agent's games; each is JSON data."""

    stages: Rows  # one row for each stage that was reached
    deaths: Rows  # one row for each stage in which games were lost
    programs: Rows  # one row for each program that was run, the most frequent first
    siphoning: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """The part of `--json`."""
        kinds = {kind: sum(row[kind] for row in self.deaths) for kind in KINDS}
        return {**self._asdict(), "death_causes": kinds}

    def tables(self) -> list[TextTable]:
        """The findings for people."""
        return [
            _stage_table(self.stages),
            _death_table(self.deaths),
            _program_table(self.programs),
            TextTable(
                "siphoning",
                ("", "mean"),
                [(name.replace("_", " "), f"{x:.2f}") for name, x in self.siphoning.items()],
            ),
        ]


def find(accounts: Sequence[Account]) -> Findings:
    """The findings of at least one game."""
    return Findings(
        stages=_stages(accounts),
        deaths=_deaths(accounts),
        programs=_programs(accounts),
        siphoning=_siphoning(accounts),
    )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def _stages(accounts: Sequence[Account]) -> Rows:
    played: dict[int, list[StageAccount]] = {}
    for account in accounts:
        for stage in account.stages:
            played.setdefault(stage.stage, []).append(stage)
    rows = []
    for stage_number, games in sorted(played.items()):
        rate, low, high = estimate(np.array([game.cleared for game in games]))
        without = estimate(np.array([game.entry.programs == 0 for game in games]))
        rows.append(
            {
                "stage": stage_number,
                "games": len(games),
                "cleared": rate,
                "cleared_ci": [low, high],
                **{name: _mean(getattr(game.entry, name) for game in games) for name in _ENTRY},
                "without_program": without.mean,
                "without_program_ci": [without.low, without.high],
                "actions": _mean(game.actions for game in games),
                "siphonings": _mean(game.siphonings for game in games),
                "hits": _mean(game.hits for game in games),
            }
        )
    return rows


def _stage_table(rows: Rows) -> TextTable:
    lines = []
    for row in rows:
        entry = [f"{row[name]:.1f}" for name in _ENTRY]
        lines.append(
            [
                str(row["stage"]),
                f"{row['games']:,}",
                _rate(row, "cleared"),
                *entry,
                _rate(row, "without_program"),
                f"{row['actions']:.1f}",
                f"{row['siphonings']:.2f}",
                f"{row['hits']:.2f}",
            ]
        )
    of_stage = ("without program", "actions", "siphonings", "hits taken")
    header = ("stage", "games", "cleared", *_ENTRY, *of_stage)
    return TextTable("by stage: how games enter it, and what happens in it", header, lines)


def _rate(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}_ci"]
    return f"{row[name]:.3f} [{low:.3f}, {high:.3f}]"


def _deaths(accounts: Sequence[Account]) -> Rows:
    lost: dict[int, list[Death]] = {}
    for account in accounts:
        if account.death is not None:
            lost.setdefault(account.death.stage, []).append(account.death)
    return [_row_of_deaths(stage, deaths) for stage, deaths in sorted(lost.items())]


def _row_of_deaths(stage: int, deaths: Sequence[Death]) -> dict[str, Any]:
    killers = Counter(death.killer for death in deaths)
    return {
        "stage": stage,
        "deaths": len(deaths),
        **{kind: killers[kind] for kind in KINDS},
        "by_several": sum(death.hits > 1 for death in deaths),
        "from_siphon": sum(death.from_siphon for death in deaths),
        "unseen": sum(death.unseen for death in deaths),
    }


def _death_table(rows: Rows) -> TextTable:
    names = ("deaths", *KINDS, "by_several", "from_siphon", "unseen")
    lines = [[str(row["stage"]), *(f"{row[name]:,}" for name in names)] for row in rows]
    lines.append(["all", *(f"{sum(row[name] for row in rows):,}" for name in names)])
    header = ("stage", *(name.replace("_", " ") for name in names))
    return TextTable(
        "deaths: kind of the last hit, several hits at once, its origin", header, lines
    )


def _programs(accounts: Sequence[Account]) -> Rows:
    rows = []
    for action in range(FIRST_PROGRAM, len(ACTION_NAMES)):
        uses = [account.actions.count(action) for account in accounts]
        if any(uses):
            played = list(zip(uses, accounts, strict=True))
            rows.append(
                {
                    "program": ACTION_NAMES[action],
                    "uses": _mean(uses),
                    "games": _mean(used > 0 for used in uses),
                    "wins_with": _mean(game.won for used, game in played if used),
                    "wins_without": _mean(game.won for used, game in played if not used),
                }
            )
    return sorted(rows, key=lambda row: -row["uses"])


def _program_table(rows: Rows) -> TextTable:
    lines = [
        [
            row["program"],
            f"{row['uses']:.2f}",
            f"{row['games']:.1%}",
            f"{row['wins_with']:.1%}",
            f"{row['wins_without']:.1%}",
        ]
        for row in rows
    ]
    header = ("program", "uses a game", "games with it", "wins with it", "wins without it")
    return TextTable("programs run (games without may never have found it)", header, lines)


def _siphoning(accounts: Sequence[Account]) -> dict[str, float]:
    siphonings = [siphoning for account in accounts for siphoning in account.siphonings]
    chances = sum(account.chances for account in accounts)
    at_once = sum(account.taken_at_once for account in accounts)
    return {
        "siphonings_a_game": len(siphonings) / len(accounts),
        "siphonings_a_stage": len(siphonings) / sum(len(account.stages) for account in accounts),
        **{
            f"{name}_each": _mean(getattr(s, name) for s in siphonings)
            for name in Siphoning._fields
        },
        "at_the_first_chance": at_once / chances if chances else 0.0,
    }
