"""The tables of the rules, as `docs/rules.md` prints them, against those of the code."""

import re

from paths import DOCS

from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM
from hackmatrix.game.rules.board import CELLS, DIRECTION_STEPS, NEIGHBOUR
from hackmatrix.game.rules.chance import EVALUATION_STREAM, MAX_WORD, Site
from hackmatrix.game.rules.enemies import MAX_HP, STEPS_PER_TURN, EnemyType
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.rewards import REWARD_PARTS

RULES = (DOCS / "rules.md").read_text()


def rows(first_cell: str) -> list[list[str]]:
    """The rows of the tables of the rules whose first cell looks like this."""
    lines = re.findall(rf"^\| {first_cell} \|.*\|$", RULES, flags=re.MULTILINE)
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def test_programs() -> None:
    table = [row[:5] for row in rows(r"\d+")]
    assert table == [
        [str(FIRST_PROGRAM + number), p.name, str(p.credits), str(p.energy), str(p.spawn)]
        for number, p in enumerate(PROGRAMS)
    ]


def test_actions() -> None:
    assert ACTION_NAMES[:5] == ("up", "down", "left", "right", "siphon")
    assert len(ACTION_NAMES) == 28


def test_enemies() -> None:
    table = [row[:4] for row in rows(r"(?:virus|daemon|glitch|cryptog)")]
    assert table == [
        [kind.name.lower(), str(int(kind)), str(MAX_HP[kind]), str(STEPS_PER_TURN[kind])]
        for kind in EnemyType
    ]


def test_reward_parts() -> None:
    assert tuple(row[0] for row in rows(r"`[a-z_]+`")) == REWARD_PARTS


def test_the_numbers_of_draws_are_those_of_recorded_games() -> None:
    assert list(Site) == list(range(16))


def test_the_upper_half_of_the_streams_is_for_evaluations() -> None:
    assert EVALUATION_STREAM == (MAX_WORD + 1) // 2


def test_a_step_leads_to_the_neighbour() -> None:
    for cell in range(CELLS):
        for step, neighbour in zip(DIRECTION_STEPS, NEIGHBOUR[cell], strict=True):
            assert neighbour in (None, cell + step)
