"""Each of the 15 parts of the reward, as the Python engine, the game process and JAX pay it."""

import json
from typing import Any

import numpy as np
import pytest
from bridge_client import Client
from jax_games import GAMES, begin, step

from hackmatrix.game.engine import Game
from hackmatrix.game.rules.rewards import REWARD_PARTS, UNIT
from hackmatrix.integrations.process.answers import REWARD_NAMES

UP, RIGHT, SIPHON, WAIT, RESET, SCORE = 0, 3, 4, 10, 19, 24
DAEMON = {"type": "daemon", "row": 0, "col": 1, "hp": 3}
AT_THE_EXIT: dict[str, Any] = {"player": {"row": 5, "col": 4, "credits": 3, "score": 2}}


def at(row: int, col: int, **player: int) -> dict[str, Any]:
    return {"row": row, "col": col, **player}


# The part, a position, an action in it, and what the part pays.
CASES: list[tuple[str, dict[str, Any], int, float]] = [
    ("step_penalty", {"player": at(2, 2)}, UP, -0.01),
    ("stage_completion", {**AT_THE_EXIT, "stage": 4}, RIGHT, 8.0),
    (
        "score_gain",
        {"player": at(2, 2, energy=5), "ownedPrograms": [SCORE], "stage": 3},
        SCORE,
        2.5,
    ),
    ("kills", {"player": at(0, 4), "enemies": [{**DAEMON, "row": 3, "col": 4, "hp": 1}]}, UP, 0.3),
    (
        "data_siphon",
        {"player": at(0, 0), "resources": [{"row": 0, "col": 1, "dataSiphon": True}]},
        RIGHT,
        1.0,
    ),
    ("distance_shaping", {"player": at(2, 2)}, RIGHT, 0.05),
    ("victory", {**AT_THE_EXIT, "stage": 8}, RIGHT, 700.0),
    (
        "death_penalty",
        {
            "player": at(0, 0, hp=1, energy=1),
            "enemies": [DAEMON],
            "ownedPrograms": [WAIT],
            "stage": 3,
        },
        WAIT,
        -1.5,
    ),
    (
        "resource_gain",
        {"player": at(0, 0, dataSiphons=1), "resources": [{"row": 0, "col": 1, "credits": 3}]},
        SIPHON,
        0.15,
    ),
    ("resource_holding", AT_THE_EXIT, RIGHT, 0.03),
    (
        "damage_penalty",
        {"player": at(0, 0, energy=1), "enemies": [DAEMON], "ownedPrograms": [WAIT]},
        WAIT,
        -1.0,
    ),
    ("hp_recovery", {"player": at(0, 0, hp=1, energy=4), "ownedPrograms": [RESET]}, RESET, 2.0),
    (
        "siphon_quality",
        {"player": at(0, 0, dataSiphons=1), "resources": [{"row": 4, "col": 4, "energy": 3}]},
        SIPHON,
        -0.075,
    ),
    ("program_waste", {"player": at(0, 0, hp=2, energy=4), "ownedPrograms": [RESET]}, RESET, -0.3),
    (
        "siphon_death_penalty",
        {
            "player": at(0, 0, hp=1, energy=1),
            "enemies": [{**DAEMON, "spawnedFromSiphon": True}],
            "ownedPrograms": [WAIT],
        },
        WAIT,
        -10.0,
    ),
]


def test_every_part_has_a_case() -> None:
    assert sorted(part for part, *_ in CASES) == sorted(REWARD_PARTS)


def set_to(position: dict[str, Any]) -> Client:
    client = Client()
    client.ask("reset", seed=7)
    assert "observation" in client.ask("setState", state=position)
    return client


def in_engine(position: dict[str, Any], action: int) -> dict[str, float]:
    outcome = Game.from_dict(set_to(position).state()).step(action)
    return {part: units * UNIT for part, units in outcome.parts.items()}


@pytest.mark.parametrize(("part", "position", "action", "points"), CASES, ids=[c[0] for c in CASES])
def test_the_process_pays_it(
    part: str, position: dict[str, Any], action: int, points: float
) -> None:
    answer = set_to(position).ask("step", actionIndex=action)
    told = answer["info"]["reward_breakdown"]
    assert told[REWARD_NAMES[part]] == points
    expected = {REWARD_NAMES[name]: paid for name, paid in in_engine(position, action).items()}
    assert told == pytest.approx(expected, abs=1e-9)
    assert answer["reward"] == pytest.approx(sum(expected.values()), abs=1e-9)


@pytest.mark.thorough
def test_jax_pays_all_of_them() -> None:
    state = begin([set_to(position).session.game.state for _, position, *_ in CASES])
    actions = np.resize([action for *_, action, _ in CASES], GAMES)
    played = step(state, actions)
    returns = np.asarray(played.info["episode_return"][: len(CASES)])  # of one step
    parts = np.asarray(played.info["reward_parts"][: len(CASES)], np.float64)
    for row, total, (part, position, action, points) in zip(parts, returns, CASES, strict=True):
        told = dict(zip(REWARD_PARTS, row.tolist(), strict=True))
        expected = in_engine(position, action)
        assert told[part] == pytest.approx(points, abs=1e-5), part
        assert told == pytest.approx(expected, abs=1e-4), part
        assert total == pytest.approx(sum(expected.values()), abs=1e-4), part


def test_the_binary_leaves_the_step_penalty_out_of_the_breakdown_and_in_the_reward() -> None:
    client = Client(exact_breakdown=True)
    client.ask("setState", state={"player": at(2, 2)})
    answer = json.loads(client.session.answer(b'{"action":"step","actionIndex":3}'))
    told = answer["info"]["reward_breakdown"]
    assert len(told) == len(REWARD_PARTS) - 1
    assert answer["reward"] == pytest.approx(sum(told.values()) - 0.01)
