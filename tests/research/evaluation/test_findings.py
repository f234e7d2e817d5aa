"""Statistics of accounts of many games, by hand."""

import json

import pytest

from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.research.evaluation.accounts import (
    Account,
    AccountEntry,
    Death,
    Siphoning,
    StageAccount,
)
from hackmatrix.research.evaluation.findings import find

ROW = ACTION_NAMES.index("ROW")
START = AccountEntry(hp=3, enemies=0, siphons=0, credits=10, energy=0, programs=0)


def lost(killer: str, hits: int, actions: bytes = b"\0") -> Account:
    stage = StageAccount(1, START, len(actions), hits, 0, cleared=False)
    death = Death(1, killer, hits, from_siphon=hits > 1, unseen=killer == "cryptog")
    return Account(actions, "died", 0, 0, -10, (stage,), (), 0, 0, death)


WON = Account(
    actions=bytes([0, 4, ROW, ROW]),
    ending="won",
    score=3,
    programs=1,
    units=100,
    stages=(
        StageAccount(1, START, 3, 1, 1, cleared=True),
        StageAccount(
            2, START._replace(hp=2, enemies=4, siphons=2, programs=1), 1, 0, 0, cleared=True
        ),
    ),
    siphonings=(Siphoning(2, 3, 0, 1, 4, 1),),
    chances=2,
    taken_at_once=1,
    death=None,
)


def test_what_three_games_say() -> None:
    found = find([WON, lost("virus", 2), lost("cryptog", 1, bytes([ROW]))])
    first, second = found.stages
    assert (first["stage"], first["games"], first["cleared"]) == (1, 3, pytest.approx(1 / 3))
    assert first["cleared_ci"][0] < 1 / 3 < first["cleared_ci"][1]
    told = [first[name] for name in ("credits", "hits", "siphonings")]
    assert told == pytest.approx([10, 4 / 3, 1 / 3])
    assert (second["games"], second["hp"], second["enemies"], second["siphons"]) == (1, 2, 4, 2)
    assert (first["without_program"], second["without_program"]) == (1, 0)
    assert first["without_program_ci"] == [pytest.approx(0.4385, abs=1e-4), 1]  # Wilson's
    (deaths,) = found.deaths
    counts = {"virus": 1, "daemon": 0, "glitch": 0, "cryptog": 1}
    how = {"by_several": 1, "from_siphon": 1, "unseen": 1}
    assert deaths == {"stage": 1, "deaths": 2, **counts, **how}
    (row,) = found.programs
    shares = {"uses": 1.0, "games": 2 / 3, "wins_with": 0.5, "wins_without": 0.0}
    assert row.pop("program") == "ROW"
    assert row == pytest.approx(shares)
    assert found.siphoning["siphonings_a_game"] == pytest.approx(1 / 3)
    assert found.siphoning["siphonings_a_stage"] == 0.25
    assert found.siphoning["energy_each"] == 3
    assert found.siphoning["at_the_first_chance"] == 0.5
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_tables_are_for_people() -> None:
    stages, deaths, programs, siphoning = find([WON, lost("virus", 2)]).tables()
    assert stages.text().splitlines()[2].split()[:2] == ["1", "2"]
    assert deaths.text().splitlines()[-1].split()[:3] == ["all", "1", "1"]
    assert programs.rows == [["ROW", "1.00", "50.0%", "100.0%", "0.0%"]]
    assert ("spawns each", "4.00") in siphoning.rows


def test_games_without_anything_are_told_too() -> None:
    found = find([WON._replace(actions=b"\0", siphonings=(), chances=0, taken_at_once=0)])
    assert (found.deaths, found.programs) == ([], [])
    assert found.siphoning["credits_each"] == 0
    assert found.siphoning["at_the_first_chance"] == 0
