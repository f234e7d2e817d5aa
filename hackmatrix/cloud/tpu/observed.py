"""Observed states of a TPU: of its request, of itself, its hosts and its run."""

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from hackmatrix.cloud.tpu.gcloud_errors import Trouble
from hackmatrix.cloud.tpu.worker import PREFIX
from hackmatrix.core.processes.supervisor import RESTART_ME


class Queue(StrEnum):
    """The state of the request in the queue: those of the API, and ABSENT."""

    ABSENT = "ABSENT"
    STATE_UNSPECIFIED = "STATE_UNSPECIFIED"
    CREATING = "CREATING"
    ACCEPTED = "ACCEPTED"
    WAITING_FOR_RESOURCES = "WAITING_FOR_RESOURCES"
    PROVISIONING = "PROVISIONING"
    ACTIVE = "ACTIVE"
    SUSPENDING = "SUSPENDING"
    SUSPENDED = "SUSPENDED"
    FAILED = "FAILED"
    DELETING = "DELETING"


class TpuNode(StrEnum):
    """The state of the TPU: those of the API, and ABSENT."""

    ABSENT = "ABSENT"
    STATE_UNSPECIFIED = "STATE_UNSPECIFIED"
    CREATING = "CREATING"
    READY = "READY"
    RESTARTING = "RESTARTING"
    REIMAGING = "REIMAGING"
    DELETING = "DELETING"
    REPAIRING = "REPAIRING"
    STOPPED = "STOPPED"
    STOPPING = "STOPPING"
    STARTING = "STARTING"
    PREEMPTED = "PREEMPTED"
    TERMINATED = "TERMINATED"
    HIDING = "HIDING"
    HIDDEN = "HIDDEN"
    UNHIDING = "UNHIDING"
    UNKNOWN = "UNKNOWN"


class Hosts(StrEnum):
    """The state of the hosts combined."""

    UNSEEN = "not asked"
    UNREACHABLE = "ssh does not reach them"
    BARE = "not set up"
    IDLE = "set up"
    TRAINING = "training"
    BUSY = "training something else"
    MIXED = "some train and some do not"
    VANISHED = "training is gone without an exit code"
    ENDED = "training has ended"


class TpuRun(NamedTuple):
    """The run's folder, in the bucket or on the TPU's disk."""

    exists: bool = False
    checkpoint: int | None = None  # number of updates of the newest one
    finished: bool = False


class Log(NamedTuple):
    """Lines that the first host printed."""

    lines: tuple[str, ...] = ()
    next: int = 0  # number of lines printed so far


NO_RUN, NO_LOG = TpuRun(), Log()


@dataclass(frozen=True)
class Observed:
    """Everything that the next command depends on, but for what happened before (`Memory`)."""

    queue: Queue = Queue.ABSENT
    queue_trouble: Trouble | None = None  # why the request failed
    node: TpuNode = TpuNode.ABSENT
    created: datetime | None = None  # of the TPU
    hosts: Hosts = Hosts.UNSEEN
    code: int = 0  # with which training ended
    last_lines: tuple[str, ...] = ()  # the last ones of training that ended
    run: TpuRun = NO_RUN
    log: Log = field(default=NO_LOG, compare=False)
    time: datetime | None = field(default=None, compare=False)  # of looking
    overdue: bool = False  # the end date has passed
    trouble: Trouble | None = None  # with the last command, or with looking

    @property
    def is_going(self) -> bool:
        """Whether it is being deleted, suspended or stopped, which Google may never end."""
        return self.queue in (Queue.DELETING, Queue.SUSPENDING) or self.node in (
            TpuNode.DELETING,
            TpuNode.STOPPING,
        )

    @property
    def is_finished(self) -> bool:
        """Whether training has ended well."""
        return self.run.finished or (self.hosts is Hosts.ENDED and self.code == 0)


State = TypeVar("State", bound=StrEnum)


def state_of(states: type[State], text: str) -> State:
    """A state of the API; one that is not known here is STATE_UNSPECIFIED."""
    return states(text if text in states.__members__ else "STATE_UNSPECIFIED")


def read_object(text: str) -> dict[str, Any]:
    """JSON that gcloud printed; empty if it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def reports_of_hosts(text: str) -> list[dict[str, Any]]:
    """Each host's answer (`worker.look`), by name of the host."""
    lines = [line.partition(PREFIX)[2] for line in text.splitlines() if PREFIX in line]
    found = [report for line in lines if (report := read_object(line))]
    return sorted(found, key=lambda report: str(report.get("host", "")))


def combine(reports: list[dict[str, Any]], hosts: int) -> tuple[Hosts, int, tuple[str, ...]]:
    """The state of all hosts, the exit code of training and its last words.

    Args:
        reports: those of the hosts that answered.
        hosts: number of hosts.
    """
    states = [str(each.get("state")) for each in reports]
    if len(reports) < hosts:
        return Hosts.UNREACHABLE, 0, ()
    if "bare" in states:
        return Hosts.BARE, 0, ()
    if "busy" in states:
        return Hosts.BUSY, 0, ()
    ended = [each for each in reports if each.get("state") == "ended"]
    # The host that failed first has an own error; its peers only miss it.
    failed = [each for each in ended if each.get("code") not in (0, *RESTART_CODES)]
    if failed:
        return Hosts.ENDED, int(failed[0].get("code") or 1), tuple(failed[0].get("words", ()))
    if "training" in states and all(each.get("code") == 0 for each in ended):
        states = [state for state in states if state != "ended"]  # one may still write files
    if len(set(states)) > 1:
        return Hosts.MIXED, 0, ()
    if ended and len(states) == hosts:
        codes = [int(each.get("code", 0)) for each in ended]
        return Hosts.ENDED, max(codes), tuple(ended[codes.index(max(codes))].get("words", ()))
    known = {"idle": Hosts.IDLE, "training": Hosts.TRAINING, "vanished": Hosts.VANISHED}
    return known.get(states[0], Hosts.BARE), 0, ()


# Also after SIGHUP, an abort of JAX's runtime (a lost peer), SIGKILL (no memory) and SIGTERM.
RESTART_CODES = (RESTART_ME, 129, 134, 137, 143)


def log_of(reports: list[dict[str, Any]], after: int) -> Log:
    """The lines of the first host, which is the one that logs."""
    if not reports or reports[0].get("state") == "bare":
        return Log((), 0)
    lines = tuple(str(line) for line in reports[0].get("lines", ()))
    total = int(reports[0].get("next", after))
    return Log(lines, total) if total >= after else Log()  # another machine: from its first line


def run_in_bucket(listing: str, job: str) -> TpuRun:
    """The run, by the names of its files in the bucket.

    Args:
        listing: a name a line.
        job: `Description.job`.
    """
    found = re.findall(r"/checkpoints/(\d+)/manifest\.json\s*$", listing, re.MULTILINE)
    exists = re.search(r"/(config\.yaml|checkpoints/.*)\s*$", listing, re.MULTILINE) is not None
    finished = re.search(rf"/tpu/finished-{job}\s*$", listing, re.MULTILINE) is not None
    return TpuRun(exists, max(map(int, found), default=None), finished)


def run_on_hosts(reports: list[dict[str, Any]]) -> TpuRun:
    """The run on the disk of the first host."""
    if not reports:
        return TpuRun()
    checkpoint = reports[0].get("checkpoint")
    return TpuRun(bool(reports[0].get("run")), None if checkpoint is None else int(checkpoint))
