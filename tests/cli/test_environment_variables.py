"""Variables of other trainers' documents, in the place of flags."""

from typing import Any

import pytest

from hackmatrix.cli.train import add_variables
from hackmatrix.core.errors import UserError

OF_PROCESSES = {"MASTER_ADDR": "host", "MASTER_PORT": "1", "WORLD_SIZE": "4", "RANK": "2"}
COORDINATED = {"coordinator": "host:1", "num_processes": 4, "process_id": 2}


def added(
    variables: dict[str, str], flags: dict[str, Any], options: dict[str, Any], **in_file: Any
) -> list[str]:
    return add_variables(variables, flags, options, in_file)


def test_xla_use_bf16_is_a_dtype() -> None:
    flags: dict[str, Any] = {}
    assert added({"XLA_USE_BF16": "1"}, flags, {}, dtype="float32") == [
        "XLA_USE_BF16=1 is taken as --dtype bfloat16"
    ]
    assert flags == {"dtype": "bfloat16"}
    for variables, flags in (
        ({"XLA_USE_BF16": "0"}, {}),
        ({"XLA_USE_BF16": "1"}, {"dtype": "float32"}),
    ):
        before = dict(flags)
        assert added(variables, flags, {}) == []
        assert flags == before


@pytest.mark.parametrize("where", ["flag", "file"])
def test_the_processes_of_a_distributed_training(where: str) -> None:
    options: dict[str, Any] = {}
    flags = {"distributed": True} if where == "flag" else {}
    in_file = {"distributed": True} if where == "file" else {}
    (note,) = added(OF_PROCESSES, flags, options, **in_file)
    assert options == COORDINATED
    assert "process 2 of 4, coordinator host:1; one process a host" in note


def test_flags_come_before_variables() -> None:
    options = {"coordinator": "other:2", "num_processes": 2, "process_id": 0}
    assert added(OF_PROCESSES, {"distributed": True}, options) == []
    assert options["coordinator"] == "other:2"


def test_a_training_of_one_process_ignores_them() -> None:
    options: dict[str, Any] = {}
    assert added(OF_PROCESSES, {}, options) == []
    assert options == {}


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"MASTER_ADDR": "host", "RANK": "0"}, "MASTER_ADDR is set, and MASTER_PORT, WORLD_SIZE"),
        (OF_PROCESSES | {"RANK": "two"}, "WORLD_SIZE and RANK must be numbers, got 4 and two"),
    ],
)
def test_half_of_them_or_no_numbers_are_refused(variables: dict[str, str], error: str) -> None:
    with pytest.raises(UserError, match=error):
        added(variables, {"distributed": True}, {})
