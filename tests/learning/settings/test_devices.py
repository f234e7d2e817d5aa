"""One program on one or many devices: the same games, the same params."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from paths import HELPERS

from hackmatrix.core.errors import UserError
from hackmatrix.core.processes import num_cores
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.devices import choose_devices

# In a process of its own, because a process has as many devices as it began with.
_TRAIN = """
import sys
sys.path.insert(0, {tests!r})
import jax, numpy as np
import hackmatrix
import probe_environments as probes
from hackmatrix.environments.tasks import MultiTask
from hackmatrix.learning.settings.devices import choose_devices
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.run.snapshots import arrays_of
from hackmatrix.learning.trainer.trainer import Trainer

enable_compilation_cache()
config = TrainConfig.of(num_envs=32, num_steps=16, hidden_dim=16, lr=1e-3, num_devices={count},
                     normalize_observations=True, gradient_accumulation_steps=2,
                     num_seeds={agents}, **{more})
found, notes = choose_devices(config)
assert (len(found), notes) == ({count}, []), (found, notes)
for count in (1, {count}):
    trainer = Trainer({env}, config.learning, config.network, found[:count],
                      agents=config.run.seeds)
    state = trainer.init(0)
    held = {{"first." + name: array for name, array in arrays_of(state).items()}}
    for update in range(5):
        state = trainer.run(state, 1)
        if update == 0:
            held |= {{"after." + name: array for name, array in arrays_of(state).items()
                      if name.startswith("games")}}
    np.savez(f"{path}/{{count}}.npz", **held, **arrays_of(state))
"""


GRID, GAME = "probes.Grid()", "hackmatrix.make()"
TASKS = "MultiTask([probes.Grid(), probes.Pairing(), probes.Policy()])"


@pytest.mark.thorough
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("env", "agents", "count", "more"),
    [
        (GRID, 1, 2, {}),
        pytest.param(GRID, 1, 8, {}, marks=pytest.mark.slow),
        pytest.param(GRID, 1, 2, {"algorithm": "pqn"}, marks=pytest.mark.slow),
        pytest.param(GRID, 1, 2, {"target_kl": 1e-3}, marks=pytest.mark.slow),
        pytest.param(GRID, 2, 2, {}, marks=pytest.mark.slow),
        pytest.param(TASKS, 1, 2, {}, marks=pytest.mark.slow),
        pytest.param(GAME, 1, 8, {}, marks=pytest.mark.slow),
    ],
)
def test_any_number_of_devices_plays_the_same_games_and_learns_the_same(
    env: str, agents: int, count: int, more: dict[str, object], tmp_path: Path
) -> None:
    code = _TRAIN.format(
        tests=str(HELPERS), count=count, env=env, agents=agents, path=tmp_path, more=more
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    alone, together = (dict(np.load(tmp_path / f"{number}.npz")) for number in (1, count))
    assert together.keys() == alone.keys()
    for name, array in alone.items():
        if name.startswith(("first.", "after.")):  # before and after the first rollout
            np.testing.assert_array_equal(together[name], array, err_msg=name)
        else:
            np.testing.assert_allclose(together[name], array, rtol=1e-5, atol=1e-5, err_msg=name)


def found(**settings: object) -> tuple[list[jax.Device], list[str]]:
    return choose_devices(TrainConfig.of(**settings))


def test_on_cpu_one_device_is_used_unless_more_are_wanted() -> None:
    assert [device.platform for device in found()[0]] == ["cpu"]
    assert len(found(device="cpu", num_devices=1)[0]) == 1


def test_devices_that_are_not_there_are_an_error_that_says_what_is() -> None:
    with pytest.raises(UserError, match="--device tpu: JAX finds none here, only cpu"):
        found(device="tpu")
    with pytest.raises(UserError, match=r"64 devices are wanted, there are \d+ \(cpu\)"):
        found(num_devices=64)


@pytest.mark.parametrize("settings", [{"tpu": True}, {"tpu_cores": 8}])
def test_settings_of_tpu_without_one_are_one_line_and_go_on(settings: dict[str, object]) -> None:
    chosen, notes = found(**settings)
    assert len(chosen) == 1
    assert notes == ["no TPU here, only cpu: the settings of tpu change nothing"]


class Chip:
    """Stands for a device of another platform."""

    platform = "tpu"

    def __init__(self, process_index: int = 0) -> None:
        self.process_index = process_index


@pytest.mark.parametrize(
    ("chips", "settings", "used", "note"),
    [
        (8, {}, 8, None),
        (8, {"tpu": True}, 8, None),
        (8, {"tpu_cores": 4}, 4, None),
        (8, {"num_devices": 2}, 2, None),
        (8, {"num_envs": 12, "num_minibatches": 1}, 6, "6 of 8 devices are used: more cannot"),
        (3, {"num_envs": 256}, 2, "2 of 3 devices are used"),
    ],
)
def test_all_devices_that_can_share_the_games_are_used(
    chips: int,
    settings: dict[str, object],
    used: int,
    note: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jax, "devices", lambda *_: [Chip()] * chips)
    chosen, notes = found(**settings)
    assert len(chosen) == used
    assert notes == [] if note is None else note in notes[0]


def test_games_that_can_not_be_shared_by_the_wanted_devices_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jax, "devices", lambda *_: [Chip()] * 8)
    with pytest.raises(UserError, match="3 devices cannot share 256 games evenly, 2 can"):
        found(num_devices=3)


@pytest.mark.parametrize(
    ("of_processes", "settings", "used"),
    [
        ([0, 0, 0, 0, 1, 1, 1, 1], {}, [0, 0, 0, 0, 1, 1, 1, 1]),
        ([0, 1, 0, 1, 0, 1], {}, [0, 0, 1, 1]),  # six cannot share 256 games, four can
        ([0, 0, 1, 1], {"num_devices": 2}, [0, 1]),
        ([0, 0, 0, 1, 1, 1], {"num_envs": 12, "num_minibatches": 1}, [0, 0, 0, 1, 1, 1]),
    ],
)
def test_each_process_brings_as_many_devices_as_the_others(
    of_processes: list[int],
    settings: dict[str, object],
    used: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jax, "devices", lambda *_: [Chip(index) for index in of_processes])
    chosen, _ = choose_devices(TrainConfig.of(**settings), 2)
    assert [chip.process_index for chip in chosen] == used


@pytest.mark.parametrize(
    ("of_processes", "settings", "message"),
    [
        ([0, 1, 2], {}, "3 devices cannot share 256 games evenly, 2 can"),
        ([0, 1, 2], {"num_devices": 4}, "--num-devices 4 counts the devices of all 3 processes"),
        ([0, 0, 0, 1, 2, 2], {"num_envs": 36, "num_devices": 6}, "they have 3, 1, 2"),
    ],
)
def test_processes_that_can_not_share_the_games_are_an_error(
    of_processes: list[int],
    settings: dict[str, object],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jax, "devices", lambda *_: [Chip(index) for index in of_processes])
    with pytest.raises(UserError, match=message):
        choose_devices(TrainConfig.of(num_minibatches=1, **settings), 3)


def test_cores_are_counted_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3}, raising=False)
    assert num_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert num_cores() == 6
