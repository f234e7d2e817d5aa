"""Several processes train as one process with as many devices, on disks that they do not share."""

import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from hosts import BATCH, TINY, Host, codes, train, train_alone, training
from small_runs import assert_same_run, rows_of, updates_of

from hackmatrix.runs.checkpoints import load_checkpoint

EVALUATED = ("--eval-interval", "3", "--eval-episodes", "4", "--save-interval", "2")
NEW = (*TINY, *EVALUATED, "--run-name", "mine")
MINE = Path("host0", "runs", "mine")
ENDLESS = ("--total-timesteps", "1e9")


def steps(updates: int) -> tuple[str, str]:
    return "--total-timesteps", str(updates * BATCH)


def told(hosts: list[Host]) -> str:
    return "\n".join(host.told() for host in hosts)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process with two devices."""
    folder = tmp_path_factory.mktemp("alone")
    train_alone(folder, *NEW, *steps(6), "--num-devices", "2")
    return folder / MINE


def test_two_processes_train_as_two_devices_and_one_of_them_writes(
    alone: Path, tmp_path: Path
) -> None:
    with training(tmp_path, 2, *NEW, *steps(6)) as hosts:
        assert codes(hosts) == [0, 0], told(hosts)
    assert_same_run(tmp_path / MINE, alone, 6)
    assert updates_of(tmp_path / MINE) == updates_of(alone)
    assert any("eval/mean_return" in row for row in rows_of(alone))
    assert hosts[1].files() == set()
    assert "update 6/6" in hosts[0].told()
    assert "update" not in hosts[1].told()


def test_a_signal_to_any_process_saves_at_one_step_and_one_process_goes_on(
    tmp_path: Path,
) -> None:
    with training(tmp_path, 2, *TINY, *ENDLESS, "--run-name", "mine") as hosts:
        hosts[0].wait_for("update 2/")
        began = time.monotonic()
        hosts[1].parent.send_signal(signal.SIGTERM)
        hosts[0].wait_for("checkpoint: update")
        assert time.monotonic() - began < 10
        assert codes(hosts) == [143, 143], told(hosts)
    assert "SIGTERM has reached another process" in hosts[0].told()
    (saved,) = updates_of(tmp_path / MINE)
    assert saved >= 2
    assert rows_of(tmp_path / MINE)[-1]["update"] == saved
    train_alone(tmp_path, "--resume", "runs/mine", *steps(saved + 2))
    assert updates_of(tmp_path / MINE) == [saved, saved + 2]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_four_two_and_one_processes_continue_what_as_many_devices_would(tmp_path: Path) -> None:
    apart, alone = tmp_path / "apart", tmp_path / "alone"
    apart.mkdir()
    alone.mkdir()
    train(apart, 4, *NEW, *steps(4))
    train_alone(alone, *NEW, *steps(4), "--num-devices", "4")
    assert_close(apart / MINE, alone / MINE, 4)  # four numbers can be added in several orders
    shutil.rmtree(alone / MINE)
    shutil.copytree(apart / MINE, alone / MINE)
    train(apart, 2, "--resume", "runs/mine", *steps(8))
    train_alone(alone, "--resume", "runs/mine", *steps(8), "--num-devices", "2")
    assert_same_run(apart / MINE, alone / MINE, 8)
    train(apart, 1, "--resume", "runs/mine", *steps(12))
    train_alone(alone, "--resume", "runs/mine", *steps(12), "--num-devices", "1")
    assert_same_run(apart / MINE, alone / MINE, 12)


def assert_close(one: Path, other: Path, update: int) -> None:
    held, expected = (load_checkpoint(run / "checkpoints" / str(update))[0] for run in (one, other))
    assert held.keys() == expected.keys()
    for name, array in held.items():
        np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-5, err_msg=name)


def test_a_lost_process_ends_the_others_with_the_code_that_asks_for_a_restart(
    tmp_path: Path,
) -> None:
    with training(tmp_path, 2, *TINY, *ENDLESS, "--heartbeat-timeout", "10") as hosts:
        hosts[0].wait_for("update 2/")
        began = time.monotonic()
        hosts[1].kill()
        assert codes(hosts) == [75, 75], told(hosts)
        assert time.monotonic() - began < 30
    assert "killed, by someone or for want of memory" in hosts[1].told()
    assert "start all processes again" in hosts[0].told()


@pytest.mark.slow
def test_without_the_first_process_the_others_end_too(tmp_path: Path) -> None:
    with training(tmp_path, 2, *TINY, *ENDLESS) as hosts:
        hosts[0].wait_for("update 2/")
        began = time.monotonic()
        hosts[0].kill()
        assert codes(hosts) == [75, 75], told(hosts)
        assert time.monotonic() - began < 30
    assert "start all processes again" in hosts[1].told().splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("stuck", [0, 1])
def test_a_process_that_is_stuck_is_killed(stuck: int, tmp_path: Path) -> None:
    with training(tmp_path, 2, *TINY, *ENDLESS, "--stall-timeout", "60") as hosts:
        hosts[0].wait_for("update 2/")
        hosts[stuck].stop()
        assert codes(hosts) == [75, 75], told(hosts)
    assert "stuck: no update for 60 s" in hosts[stuck].told()


@pytest.mark.slow
def test_without_its_parent_a_process_stops_with_a_checkpoint(tmp_path: Path) -> None:
    with training(tmp_path, 2, *TINY, *ENDLESS, "--run-name", "mine") as hosts:
        hosts[0].wait_for("update 2/")
        hosts[0].parent.kill()
        assert hosts[1].parent.wait() == 143, told(hosts)
    assert len(updates_of(tmp_path / MINE)) == 1


@pytest.mark.parametrize(
    ("where", "arguments", "message"),
    [
        (0, ("--resume", "runs/none"), "--resume runs/none: there is no such file or folder"),
        (1, ("--num-devices", "3"), "--num-devices 3 counts the devices of all 2 processes"),
    ],
)
@pytest.mark.slow
def test_a_mistake_ends_all_processes_alike(
    where: int, arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with training(tmp_path, 2, *TINY, *arguments) as hosts:
        assert codes(hosts) == [2, 2], told(hosts)
    assert f"hackmatrix train: error: {message}" in hosts[where].told()
