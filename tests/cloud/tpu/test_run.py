"""`hackmatrix tpu run` from its start to its end, with a gcloud that plays Google."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tpu_world import RUN, FakeGcloud, GcloudInProcess

from hackmatrix.cloud.tpu.decision import TpuHistory
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.run import Driver

NOON = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
CHECKPOINT_40 = [f"{RUN}/config.yaml", f"{RUN}/checkpoints/40/manifest.json"]
PREEMPTED = {"queue": "SUSPENDED", "node": "PREEMPTED", "bucket": CHECKPOINT_40}
FINISHED = {"hosts": "ended", "code": 0}
NEW = TpuHistory()
FIRST = ["create", "set up", "train"]
LAST = ["rsync", "delete"]


class Clock:
    """A clock that sleeping moves; the sleep number `interrupt` is Ctrl-C."""

    def __init__(self, interrupt: int | None = None, start: datetime.datetime = NOON) -> None:
        self.seconds: list[float] = []
        self.interrupt = interrupt
        self.start = start

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self.interrupt:
            raise KeyboardInterrupt
        assert len(self.seconds) < 300, "it goes on and on"

    def now(self) -> datetime.datetime:
        return self.start + datetime.timedelta(seconds=sum(self.seconds))


class Told(list[str]):
    """The lines that were printed."""

    def __contains__(self, text: object) -> bool:
        return any(str(text) in line for line in self)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def run(
    make: Callable[..., Description], told: Told, tmp_path: Path, gcloud: FakeGcloud
) -> Callable[..., int]:
    def runs(clock: Clock | None = None, memory: TpuHistory = NEW, **changes: Any) -> int:
        clock = clock or Clock()
        gcloud_here = GcloudInProcess(told.append)
        gcloud_here.folder = gcloud.folder
        folder = tmp_path / "runs"
        tpu = make(**changes)
        return Driver(tpu, gcloud_here, folder, told.append, clock.sleep, clock.now).run(memory)

    return runs


Runs = Callable[..., int]


def finished_marker(gcloud: FakeGcloud) -> str:
    """The object that the hosts write when training is finished."""
    command = gcloud.world["command"]
    return str(command.split("--marker ")[1].split()[0])


NO_CAPACITY = "There is no more capacity in the zone"
QUOTA = "Quota limit 'TPUV4' has been exceeded. Limit: 32 in zone"
NO_LOGIN = "There was a problem refreshing your current auth tokens: invalid_grant"
NO_BRANCH: list[Any] = [128, "fatal: Remote branch nope not found in upstream origin"]
# The looks at the hosts succeed, the set-up does not.
NO_SETUP = {"fail": {"tpu-vm ssh": [None, NO_BRANCH, None] * 3}}


def failing(verb: str, *failures: Any) -> dict[str, Any]:
    return {"fail": {verb: list(failures)}}


def test_a_preempted_tpu_is_made_again(gcloud: FakeGcloud, run: Runs, told: Told) -> None:
    gcloud.change(events={"6": PREEMPTED, "12": PREEMPTED, "19": FINISHED})
    assert run() == 0
    again = ["delete", "create", "set up", "train"]
    assert gcloud.actions == [*FIRST, *again, *again, *LAST]
    assert "the request is SUSPENDED; deleting it, as it holds quota until then" in told
    assert "training, from 40" in told


def test_a_login_that_expires_at_night_is_waited_for(
    gcloud: FakeGcloud, run: Runs, told: Told
) -> None:
    failures = [*[None] * 6, *[NO_LOGIN] * 4]
    gcloud.change(**failing("queued-resources describe", *failures), events={"14": FINISHED})
    assert run() == 0
    assert gcloud.actions == [*FIRST, *LAST]
    assert "run `gcloud auth login`; training goes on meanwhile" in told


def test_ssh_that_never_works_needs_a_person(gcloud: FakeGcloud, run: Runs, told: Told) -> None:
    gcloud.change(silent=True)
    assert run() == 1
    assert gcloud.actions == ["create"]
    assert "the TPU is READY and ssh never worked" in told[-1]


def test_training_that_is_ended_from_outside_goes_on_but_not_for_ever(
    gcloud: FakeGcloud, run: Runs, told: Told
) -> None:
    killed = {"hosts": "ended", "code": 137}
    gcloud.change(events={str(look): killed for look in range(6, 20)}, bucket=CHECKPOINT_40)
    assert run() == 1
    assert gcloud.actions == ["create", "set up", *["train"] * 4]
    assert "3 times without a new checkpoint" in told[-1]
    assert " --again " in gcloud.world["command"]


@pytest.mark.parametrize("deletes", [False, True])
def test_a_setup_that_fails_is_tried_three_times(
    deletes: bool, gcloud: FakeGcloud, run: Runs, told: Told
) -> None:
    gcloud.change(**NO_SETUP, bucket=CHECKPOINT_40)
    assert run(memory=TpuHistory(delete_on_failure=deletes)) == 1
    assert gcloud.actions == ["create", "set up", "set up", "set up", *(LAST if deletes else [])]
    assert "fatal: Remote branch nope not found" in told[-1]
    assert ("The TPU is still there, and costs" in told[-1]) == (not deletes)


def test_from_nothing_to_the_fetched_run(gcloud: FakeGcloud, run: Runs, told: Told) -> None:
    gcloud.change(
        events={"6": {"log": ["update 1"]}, "7": {"log": ["update 1", "update 2"]}, "8": FINISHED}
    )
    assert run() == 0
    assert gcloud.actions == [*FIRST, *LAST]
    assert " --again " not in gcloud.world["command"]
    assert gcloud.world["queue"] is None
    assert told[-1].endswith("the run is here")
    assert "it will cost at most $12.88 an hour" in told
    assert [line for line in told if line.startswith("| ")] == ["| update 1", "| update 2"]


def test_ssh_that_fails_for_a_while_is_waited_for(gcloud: FakeGcloud, run: Runs) -> None:
    gcloud.change(events={"6": {"silent": True}, "15": {"silent": False}, "17": FINISHED})
    clock = Clock()
    assert run(clock) == 0
    assert gcloud.actions == [*FIRST, *LAST]
    first = clock.seconds.index(15)
    assert clock.seconds[first : first + 5] == [15, 30, 60, 60, 60]


def test_a_quota_that_is_used_up_is_waited_for(gcloud: FakeGcloud, run: Runs, told: Told) -> None:
    gcloud.change(**failing("queued-resources create", *[QUOTA] * 8), events={"30": FINISHED})
    clock = Clock()
    assert run(clock) == 0
    assert gcloud.actions == ["create"] * 8 + [*FIRST, *LAST]
    assert clock.seconds[:8] == [15, 30, 60, 120, 240, 300, 300, 300]
    assert "`hackmatrix tpu list FILE`; trying again, for ever" in told


def test_an_error_of_training_stops_it_all(gcloud: FakeGcloud, run: Runs, told: Told) -> None:
    words = ["hackmatrix train: error: --lr must be above 0"]
    gcloud.change(events={"6": {"hosts": "ended", "code": 2, "words": words}})
    assert run() == 1
    assert gcloud.actions == FIRST  # and no TPU was deleted
    assert told[-1].strip() == words[0]
    assert "training failed with exit code 2" in told
    # The same again, until the user asks for more.
    assert run() == 1
    assert gcloud.actions == FIRST
    gcloud.change(events={str(gcloud.world["looks"] + 3): FINISHED})
    assert run(memory=TpuHistory(retry=True)) == 0
    assert gcloud.actions == [*FIRST, "set up", "train", *LAST]


def test_after_a_laptop_slept_it_goes_on(gcloud: FakeGcloud, run: Runs, told: Told) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Clock(interrupt=5))
    assert gcloud.actions == FIRST
    # While nobody looked: preempted, and gone.
    gcloud.change(queue=None, node=None, hosts="bare", bucket=CHECKPOINT_40)
    gcloud.change(events={str(gcloud.world["looks"] + 6): FINISHED})
    assert run() == 0
    assert gcloud.actions == [*FIRST, "create", "set up", "train", *LAST]
    assert "training, from 40" in told


@pytest.mark.parametrize("interrupt", range(1, 7))
def test_ctrl_c_anywhere_is_repeatable(interrupt: int, gcloud: FakeGcloud, run: Runs) -> None:
    gcloud.change(events={"8": FINISHED})
    with pytest.raises(KeyboardInterrupt):
        run(Clock(interrupt))
    assert run() == 0
    assert gcloud.actions in ([*FIRST, *LAST], [*FIRST, "rsync", "delete", "rsync"])


def test_a_run_that_finished_while_nobody_looked_is_fetched(gcloud: FakeGcloud, run: Runs) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(Clock(interrupt=5))
    gcloud.change(queue="SUSPENDED", node="PREEMPTED", bucket=[finished_marker(gcloud)])
    assert run() == 0
    assert gcloud.actions == [*FIRST, *LAST]
    # With other arguments it is another training.
    gcloud.change(bucket=[*CHECKPOINT_40, finished_marker(gcloud)])
    gcloud.change(events={str(gcloud.world["looks"] + 6): FINISHED})
    assert run(train="--num-envs 2048 --no-wandb --total-timesteps 200_000_000") == 0
    assert gcloud.actions[5:] == ["create", "set up", "train", *LAST]


def test_several_hosts_train_together_once_all_answer(gcloud: FakeGcloud, run: Runs) -> None:
    gcloud.change(num_hosts=1, events={"5": {"num_hosts": 2}, "10": FINISHED})
    assert run(type="v4-16") == 0
    assert gcloud.actions == [*FIRST, *LAST]
    assert gcloud.world["command"].rstrip("'").endswith("--distributed")


def test_the_end_date_deletes_the_tpu(gcloud: FakeGcloud, run: Runs, told: Told) -> None:
    gcloud.change(bucket=CHECKPOINT_40)
    clock = Clock(start=NOON + datetime.timedelta(hours=10, minutes=45))
    assert run(clock, end_date="2026-11-22") == 1
    assert gcloud.actions == ["create", "set up", "train", "rsync", "delete"]
    assert clock.now().date() == datetime.date(2026, 11, 23)
    assert "this TPU is READY: at most 1.0 h READY, which cost at most $12.9" in told
    assert told[-1].endswith("the end date has passed, and nothing is left that costs")


def test_without_a_bucket_the_run_comes_from_the_tpu(gcloud: FakeGcloud, run: Runs) -> None:
    gcloud.change(events={"6": FINISHED})
    assert run(bucket=None, spot=False) == 0
    (copy,) = (call for call in gcloud.calls if "--recurse" in call)
    assert copy[-2] == "hackmatrix-train:/opt/hackmatrix/runs/hackmatrix-train"
    assert not any(call[0] == "storage" for call in gcloud.calls)


@pytest.mark.parametrize(
    ("world", "looks", "state", "matter"),
    [
        (  # a preempted TPU is not said to cost
            {"events": {"6": {"queue": "SUSPENDING", "node": "PREEMPTED"}}, "sticks": 3},
            130,
            "this TPU is DELETING: at most 0.0 h READY, which cost at most $0.",
            "",
        ),
        (  # one that was there before may have cost since it was made
            {"queue": "ACTIVE", "node": "READY", "hosts": "training"},
            70,
            "this TPU is READY: at most 5.0 h READY, which cost at most $64.40",
            "",
        ),
        (
            failing("queued-resources describe", *[None] * 6, *["503 UNAVAILABLE"] * 20),
            24,
            "this TPU was READY when gcloud last told: at most 0.0 h READY",
            "; the network or Google's service did not answer (ERROR: (gcloud) 503",
        ),
        (
            failing("queued-resources create", *[NO_CAPACITY] * 30),
            29,
            "still waiting for a TPU; it will cost",
            "the zone has no free TPU of this type",
        ),
    ],
)
def test_each_hour_the_state_and_its_cost_are_told(
    world: dict[str, Any],
    looks: int,
    state: str,
    matter: str,
    gcloud: FakeGcloud,
    run: Runs,
    told: Told,
) -> None:
    gcloud.change(**world)
    with pytest.raises(KeyboardInterrupt):
        run(Clock(interrupt=looks))
    assert any(state in line and matter in line for line in told)
    states = {"this TPU is READY", "this TPU is DELETING", "this TPU was READY", "still waiting"}
    assert [each for each in states if each in told] == [each for each in states if each in state]


def test_secrets_are_copied_and_never_shown(
    gcloud: FakeGcloud, run: Runs, told: Told, tmp_path: Path
) -> None:
    """To hosts that have set themselves up, too."""
    secrets = tmp_path / "secrets.env"
    secrets.write_text("WANDB_API_KEY=0123456789abcdef\n")
    gcloud.change(starts="idle", events={"6": FINISHED})
    assert run(secrets=secrets) == 0
    assert gcloud.actions == ["create", "train", *LAST]
    (copy,) = (call for call in gcloud.calls if str(secrets) in call)
    assert copy[-2:] == [str(secrets), "hackmatrix-train:hackmatrix.env"]
    assert "0123456789abcdef" not in json.dumps(gcloud.calls)
    assert "0123456789abcdef" not in told
    assert "0123456789" not in (tmp_path / ".hackmatrix/tpu/hackmatrix-train/setup.sh").read_text()
