"""Sixty lives of `hackmatrix tpu run`: whatever happens to the TPU, the run comes home once."""

import datetime
import random
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tpu_world import RUN, FakeGcloud, GcloudInProcess, action_of

from hackmatrix.cloud.tpu.decision import TpuHistory
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.run import Driver

pytestmark = pytest.mark.thorough

NOON = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
LIVES, QUICK = 60, 2  # in all, and in the quick suite
MOST_SLEEPS = 3000
CHECKPOINTS = [f"{RUN}/config.yaml", f"{RUN}/checkpoints/40/manifest.json"]
STUCK = [{"queue": "SUSPENDING", "node": "PREEMPTED"}, {"queue": "DELETING", "node": "DELETING"}]
EVENTS: list[dict[str, Any]] = [
    *STUCK,
    {"queue": "SUSPENDED", "node": "PREEMPTED"},
    {"queue": "FAILED", "node": None, "reason": "There is no more capacity"},
    {"queue": None, "node": None},
    {"node": None},
    {"node": "REPAIRING"},
    {"node": "STOPPING"},
    {"node": "STOPPED", "hosts": "vanished"},
    {"node": "TERMINATED"},
    {"node": "UNKNOWN"},
    {"hosts": "ended", "code": 143},
    {"hosts": "vanished"},
    {"silent": True},
]
OTHER_TROUBLES: dict[str, list[Any]] = {
    "queued-resources create": ["There is no more capacity", "Quota limit X exceeded. Limit: 32"],
    "queued-resources describe": ["Connection timed out", "503 UNAVAILABLE", "invalid_grant"],
    "tpu-vm describe": ["INTERNAL", "a new kind of error"],
    "tpu-vm ssh": [[255, "exited with return code [255]"], [1, "fatal: unable to access"]],
    "tpu-vm scp": [[255, "exited with return code [255]"]],
    "queued-resources delete": ["DEADLINE_EXCEEDED", "FAILED_PRECONDITION: it is being deleted"],
    "storage rsync": ["Connection reset"],
}


class Asleep(Exception):
    """The laptop was closed."""


class Life:
    """What happens to one TPU, drawn from a seed."""

    def __init__(self, seed: int, gcloud: FakeGcloud) -> None:
        self.rng = random.Random(seed)
        self.gcloud = gcloud
        self.slept = 0.0
        self.sleeps = 0
        self.sleepy = 0.02  # chance that the laptop is closed
        events, look = {}, 0
        for _ in range(self.rng.randrange(5)):
            look += self.rng.randrange(2, 12)
            events[str(look)] = {**self.rng.choice(EVENTS), "bucket": CHECKPOINTS}
            look += 60  # until it trains again
            events[str(look - self.rng.randrange(20, 50))] = {"silent": False}
        fail = {}
        for verb in self.rng.sample(sorted(OTHER_TROUBLES), self.rng.randrange(4)):
            times = [None] * self.rng.randrange(4)
            fail[verb] = [*times, *self.rng.sample(OTHER_TROUBLES[verb], 1)]
        gcloud.change(
            events=events,
            fail=fail,
            sticks=self.rng.randrange(2),
            starts=self.rng.choice(["bare", "idle"]),
            queue_looks=self.rng.randrange(4),
        )
        self.end = look + 80

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.sleeps += 1
        assert self.sleeps < MOST_SLEEPS, "it goes on and on"
        world = self.gcloud.world
        if world["looks"] >= self.end and world["hosts"] == "training":
            self.gcloud.change(hosts="ended", code=0)
        if self.rng.random() < self.sleepy:
            self.slept += 3600 * self.rng.randrange(1, 9)
            raise Asleep

    def now(self) -> datetime.datetime:
        return NOON + datetime.timedelta(seconds=self.slept)


Lived = Callable[[Life], None]


@pytest.fixture
def lives(gcloud: FakeGcloud, make: Callable[..., Description], tmp_path: Path) -> Lived:
    """Runs a life to its end, and looks at what there is then."""
    told = list[str]()
    here = GcloudInProcess(told.append)
    here.folder = gcloud.folder
    secrets = tmp_path / "secrets.env"
    secrets.write_text("WANDB_API_KEY=0123456789abcdef\n")
    tpu = make(secrets=secrets)

    def to_its_end(life: Life) -> None:
        code = None
        # The laptop is opened, or its owner logs in, and the same command is given again.
        while code is None or "`gcloud auth login`" in told[-1]:
            driver = Driver(tpu, here, tmp_path / "runs", told.append, life.sleep, life.now)
            code = None
            with suppress(Asleep):
                code = driver.run(TpuHistory())
        assert code == 0, told[-3:]
        world = gcloud.world
        assert (world["queue"], world["node"]) == (None, None)
        assert gcloud.actions[-1] == "delete" or "rsync" in gcloud.actions[-2:]
        # No training beside another, and none without its secrets, copied just before.
        assert all(hosts != "training" for hosts, _ in world["trainings"])
        before = [first for first, call in pairwise(gcloud.calls) if action_of(call) == "train"]
        assert before
        assert all(call[-1].endswith(":hackmatrix.env") for call in before)

    return to_its_end


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < QUICK else pytest.mark.slow) for n in range(LIVES)]
)
def test_the_run_comes_home(seed: int, gcloud: FakeGcloud, lives: Lived) -> None:
    lives(Life(seed, gcloud))


@pytest.mark.parametrize("stuck", [STUCK[0], pytest.param(STUCK[1], marks=pytest.mark.slow)])
def test_the_run_of_a_tpu_that_google_never_lets_go_comes_home(
    stuck: dict[str, str], gcloud: FakeGcloud, lives: Lived
) -> None:
    life = Life(0, gcloud)
    life.sleepy = 0.0
    gcloud.change(events={"7": {**stuck, "bucket": CHECKPOINTS}}, fail={}, sticks=1)
    lives(life)
    assert gcloud.actions.count("train") == 2
