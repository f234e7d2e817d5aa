"""The facts of a checkpoint: what JSON holds of them, and clear words on what does not fit."""

import json
from typing import Any

import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.runs.checkpoints import Facts

# As versions before `--num-seeds` wrote it; `arrays` and `format` are the checkpoint's.
WRITTEN = """{
 "format": 1,
 "update": 7,
 "environment": "HackMatrix-v1",
 "version": "0.1.0",
 "timesteps": 448,
 "last_logged": 6,
 "evaluation": {"mean_return": 3, "win_rate": 0.5},
 "config": {"seed": 5, "lr": 0.1},
 "arrays": {"update": ["int32"]}
}"""


def test_facts_of_an_older_version_are_read() -> None:
    facts = Facts.from_json(json.loads(WRITTEN), "facts.json")
    assert (facts.update, facts.timesteps, facts.last_logged) == (7, 448, 6)
    assert (facts.environment, facts.version) == ("HackMatrix-v1", "0.1.0")
    assert facts.config == {"seed": 5, "lr": 0.1}
    assert facts.num_agents == 1
    assert facts.score == 3.0
    assert facts.of_agent(0) == facts


def test_facts_go_through_json_unchanged() -> None:
    facts = Facts(7, 448, 6, "Grid", "0.1.0", {"seed": 5, "checkpoint_dir": "runs"})
    assert Facts.from_json(json.loads(json.dumps(facts.as_json())), "") == facts
    assert facts.score is None


def test_one_of_many_agents_has_a_configuration_and_an_evaluation_of_its_own() -> None:
    evaluation = {"mean_return": 2.0, "agents": [{"mean_return": 1.0}, {"mean_return": 3.0}]}
    facts = Facts(7, 448, 6, "Grid", "0.1.0", {"seed": 5, "num_seeds": 2}, evaluation)
    assert facts.num_agents == 2
    assert facts.score == 2.0
    second = facts.of_agent(1)
    assert second.config == {"seed": 6, "num_seeds": 1}
    assert second.evaluation == {"mean_return": 3.0}
    assert facts.config == {"seed": 5, "num_seeds": 2}


@pytest.mark.parametrize("name", sorted(json.loads(WRITTEN).keys() - {"format", "arrays"}))
def test_a_fact_that_is_missing_is_named(name: str) -> None:
    facts = json.loads(WRITTEN)
    del facts[name]
    message = f"^there/facts.json: holds no {name}; another version of hackmatrix wrote it$"
    with pytest.raises(UserError, match=message):
        Facts.from_json(facts, "there/facts.json")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("update", "7", "update must be a whole number, got '7'"),
        ("timesteps", 1.5, "timesteps must be a whole number, got 1.5"),
        ("last_logged", None, "last_logged must be a whole number, got None"),
        ("environment", 3, "environment must be a text, got 3"),
        ("version", [], r"version must be a text, got \[\]"),
        ("config", "lr", "config must be an object, got 'lr'"),
        ("evaluation", 3.0, "evaluation must be null or have a number as mean_return"),
        ("evaluation", {"win_rate": 1}, "evaluation must be null or have a number as mean_return"),
    ],
)
def test_a_fact_of_the_wrong_kind_is_named(name: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=f"^facts.json: {message}$"):
        Facts.from_json(json.loads(WRITTEN) | {name: value}, "facts.json")
