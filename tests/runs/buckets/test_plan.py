"""The order of the steps that make a bucket like a folder."""

from itertools import permutations

import pytest

from hackmatrix.runs.buckets.plan import (
    half_checkpoints,
    is_growing,
    is_mirrored,
    prunable,
    steps,
    whole_checkpoints,
)

RUN = {
    "config.yaml": "c",
    "metrics.jsonl": "m",
    "checkpoints/20/arrays/d": "a",
    "checkpoints/20/facts.json": "f",
    "checkpoints/20/manifest.json": "n",
    "checkpoints/100/arrays/d": "a",
    "checkpoints/100/facts.json": "f",
    "checkpoints/100/manifest.json": "n",
    "params_100.npz": "p",
    "params_100.json": "j",
    "log.txt": "l",
}


def told(*arguments: dict[str, str], doomed: tuple[str, ...] = ()) -> list[str]:
    return [f"{step.verb} {step.name}" for step in steps(*arguments, doomed)]


def test_a_run_is_written_in_an_order_in_which_each_beginning_can_be_resumed() -> None:
    expected = [
        "write config.yaml",
        "write metrics.jsonl",
        "write checkpoints/100/arrays/d",
        "write checkpoints/100/facts.json",
        "write checkpoints/100/manifest.json",
        "write checkpoints/20/arrays/d",
        "write checkpoints/20/facts.json",
        "write checkpoints/20/manifest.json",
        "write params_100.npz",
        "write params_100.json",
        "write log.txt",
    ]
    assert told(RUN, {}) == expected
    assert told(dict(reversed(RUN.items())), {}) == expected
    assert told(RUN, RUN) == told({}, RUN) == []  # nothing is deleted by itself


def test_a_seal_goes_before_what_it_seals_changes_and_comes_back_after_it() -> None:
    assert told(RUN, RUN | {"checkpoints/20/arrays/d": "old"}) == [
        "delete checkpoints/20/manifest.json",
        "write checkpoints/20/arrays/d",
        "write checkpoints/20/manifest.json",
    ]
    assert told(RUN, RUN | {"params_100.npz": "old", "params_100.json": "old"}) == [
        "delete params_100.json",
        "write params_100.npz",
        "write params_100.json",
    ]
    assert told(RUN, RUN | {"params_100.json": "old"}) == ["write params_100.json"]


def test_strangers_among_the_files_of_a_checkpoint_go_before_it_is_written() -> None:
    old = {"checkpoints/20/arrays/old": "x", "checkpoints/20/manifest.json": "old"}
    there = {n: crc for n, crc in RUN.items() if not n.startswith("checkpoints/20")} | old
    assert told(RUN, there) == [
        "delete checkpoints/20/manifest.json",
        "delete checkpoints/20/arrays/old",
        "write checkpoints/20/arrays/d",
        "write checkpoints/20/facts.json",
        "write checkpoints/20/manifest.json",
    ]


def test_removals_come_last_and_seals_first_among_them() -> None:
    old = ("checkpoints/5/arrays/d", "checkpoints/5/facts.json", "checkpoints/5/manifest.json")
    there = {name: crc for name, crc in RUN.items() if name != "log.txt"}
    for doomed in permutations(old):
        assert told(RUN, there | dict.fromkeys(old, "x"), doomed=doomed) == [
            "write log.txt",
            "delete checkpoints/5/manifest.json",
            "delete checkpoints/5/arrays/d",
            "delete checkpoints/5/facts.json",
        ]


def test_each_beginning_of_the_steps_keeps_manifests_true() -> None:
    new = dict.fromkeys(RUN, "new")
    there = dict(RUN)
    for step in steps(new, RUN, ()):
        if step.verb == "write":
            there[step.name] = new[step.name]
        else:
            del there[step.name]
        for update in whole_checkpoints(there):
            sums = {crc for name, crc in there.items() if name.startswith(f"checkpoints/{update}/")}
            assert sums in ({"a", "f", "n"}, {"new"}), (step, there)
    assert there == new


def test_checkpoints_count_by_their_manifests() -> None:
    assert whole_checkpoints(RUN) == [20, 100]
    names = [*RUN, "checkpoints/7/facts.json", "checkpoints/x/manifest.json"]
    assert whole_checkpoints(names) == [20, 100]
    assert half_checkpoints(names) == [7]
    assert whole_checkpoints(["checkpoints/7/arrays/manifest.json"]) == []


@pytest.mark.parametrize(
    ("name", "mirrored", "pruned", "growing"),
    [
        ("config.yaml", True, False, False),
        ("metrics.jsonl", True, False, True),
        ("log.txt", True, False, True),
        (".saving-params_3.npz-77", False, False, True),
        ("checkpoints/.saving-3-77/facts.json", False, False, False),
        ("lease.json", False, False, False),
        ("wandb/debug.log", False, False, True),
        ("wandb.json", True, False, False),
        ("checkpoints/3/arrays/d/1", True, True, False),
        ("seed_1/params_3.npz", True, True, False),
        ("params_3.json", True, True, False),
        ("tpu/finished-1", True, False, True),
    ],
)
def test_what_becomes_of_files(name: str, mirrored: bool, pruned: bool, growing: bool) -> None:
    assert is_mirrored(name) == mirrored
    assert prunable(name) == pruned
    if mirrored:
        assert is_growing(name) == growing
