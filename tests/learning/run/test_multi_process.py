"""Several processes train as one process with as many devices, on disks that they do not share."""

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hosts import BATCH, TINY, Host, codes, train, train_alone, training
from small_runs import assert_same_run, rows_of, updates_of

from hackmatrix.runs.checkpoints import load_checkpoint

pytestmark = pytest.mark.thorough

EVALUATED = ("--eval-interval", "3", "--eval-episodes", "4", "--save-interval", "2")
NEW = (*TINY, *EVALUATED, "--run-name", "mine")
MINE = Path("host0", "runs", "mine")
UNENDING = (  # the same however long it is to be
    *(*TINY, "--run-name", "mine", "--lr-schedule", "constant"),
    *("--eval-interval", "1", "--eval-episodes", "4"),
)
ENDLESS = ("--total-timesteps", "1e9")
STALL = 60  # seconds; longer than compiling takes where many tests run at once


def steps(updates: int) -> tuple[str, str]:
    return "--total-timesteps", str(updates * BATCH)


def told(hosts: list[Host]) -> str:
    return "\n".join(host.told() for host in hosts)


@pytest.fixture(scope="module")
def with_one_stuck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Host]]:
    """Two processes of which the second does nothing any more."""
    folder = tmp_path_factory.mktemp("stuck")
    with training(folder, 2, *TINY, *ENDLESS, "--stall-timeout", str(STALL)) as hosts:
        hosts[0].wait_for("update 2/")
        hosts[1].stop()
        yield hosts


@pytest.fixture(scope="module")
def stopped_after(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A folder in which two processes trained until one had a signal, and the updates made."""
    folder = tmp_path_factory.mktemp("two")
    with training(folder, 2, *UNENDING, *ENDLESS) as hosts:
        hosts[0].wait_for("update 6/")
        hosts[1].parent.send_signal(signal.SIGTERM)
        hosts[0].wait_for("stopped after")
        assert codes(hosts) == [143, 143], told(hosts)
    assert "SIGTERM has reached another process" in hosts[0].told()
    assert "update" not in hosts[1].told()
    assert hosts[1].files() == set()
    return folder, updates_of(folder / MINE)[-1]


@pytest.mark.usefixtures("with_one_stuck")  # its time passes meanwhile
def test_two_processes_train_as_two_devices_until_a_signal_to_any_and_then_one_goes_on(
    stopped_after: tuple[Path, int], tmp_path: Path
) -> None:
    apart, saved = stopped_after
    assert saved >= 6
    train_alone(tmp_path, *UNENDING, *steps(saved), "--num-devices", "2")
    assert_same_run(apart / MINE, tmp_path / MINE, saved)
    assert updates_of(apart / MINE) == updates_of(tmp_path / MINE)
    assert any("eval/mean_return" in row for row in rows_of(tmp_path / MINE))
    shutil.copytree(apart / MINE, tmp_path / "host0" / "runs" / "other")
    train_alone(tmp_path, "--resume", "runs/other", *steps(saved + 2), "--num-devices", "1")
    assert updates_of(tmp_path / "host0" / "runs" / "other")[-1] == saved + 2


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_four_two_and_one_processes_with_evaluations_continue_what_as_many_devices_would(
    tmp_path: Path,
) -> None:
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


# Before that process 1 is lost where it is stuck, below.
@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_process_ends_the_others_with_the_code_that_asks_for_a_restart(
    lost: int, stopped_after: tuple[Path, int], tmp_path: Path
) -> None:
    """And that two go on where two have stopped."""
    made, saved = stopped_after
    shutil.copytree(made / MINE, tmp_path / MINE)
    more = ("--resume", "runs/mine", *ENDLESS, "--heartbeat-timeout", "10")
    with training(tmp_path, 2, *more) as hosts:
        hosts[0].wait_for(f"update {saved + 2}/")
        began = time.monotonic()
        hosts[lost].kill()
        assert codes(hosts) == [75, 75], told(hosts)
        assert time.monotonic() - began < 30
    assert "killed, by someone or for want of memory" in hosts[lost].told()
    assert "start all processes again" in hosts[1 - lost].told().splitlines()[-1]


def test_a_process_that_is_stuck_is_killed(with_one_stuck: list[Host]) -> None:
    assert codes(with_one_stuck) == [75, 75], told(with_one_stuck)
    assert f"stuck: no update for {STALL} s" in with_one_stuck[1].told()
    assert "start all processes again" in with_one_stuck[0].told().splitlines()[-1]


@pytest.mark.slow
def test_a_first_process_that_is_stuck_is_killed(tmp_path: Path) -> None:
    with training(tmp_path, 2, *TINY, *ENDLESS, "--stall-timeout", str(STALL)) as hosts:
        hosts[0].wait_for("update 2/")
        hosts[0].stop()
        assert codes(hosts) == [75, 75], told(hosts)
    assert f"stuck: no update for {STALL} s" in hosts[0].told()


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
