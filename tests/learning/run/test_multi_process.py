"""Several processes train as one process with as many devices, on disks that they do not share."""

import shutil
import signal
import time
from pathlib import Path

import pytest
from hosts import BATCH, TINY, Host, codes, train_alone, training
from small_runs import assert_same_run, rows_of, run_of, updates_of

from hackmatrix.learning.settings.config import TrainOptions

pytestmark = pytest.mark.thorough

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


@pytest.mark.slow
def test_two_processes_train_as_two_devices_until_a_signal_to_any_and_then_one_goes_on(
    stopped_after: tuple[Path, int], tmp_path: Path
) -> None:
    apart, saved = stopped_after
    assert saved >= 6
    train_alone(tmp_path, *UNENDING, *steps(saved), "--num-devices", "2")
    assert_same_run(apart / MINE, tmp_path / MINE, saved)
    assert updates_of(apart / MINE) == updates_of(tmp_path / MINE)
    assert any("eval/mean_return" in row for row in rows_of(tmp_path / MINE))
    resumed = TrainOptions(resume=str(apart / MINE), run_name="other")
    changes = {"total_timesteps": (saved + 2) * BATCH, "num_devices": 1, "eval_interval": None}
    assert updates_of(run_of(tmp_path, resumed, **changes).run)[-1] == saved + 2


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


@pytest.mark.slow  # test_processes has the quick case
@pytest.mark.parametrize("stuck", [0, 1])
def test_a_process_that_is_stuck_is_killed(stuck: int, tmp_path: Path) -> None:
    with training(tmp_path, 2, *TINY, *ENDLESS, "--stall-timeout", str(STALL)) as hosts:
        hosts[0].wait_for("update 2/")
        hosts[stuck].stop()
        assert codes(hosts) == [75, 75], told(hosts)
    assert f"stuck: no update for {STALL} s" in hosts[stuck].told()
    assert "start all processes again" in hosts[1 - stuck].told().splitlines()[-1]


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
