"""Looks at a TPU: asks gcloud what `decide` needs to know."""

import dataclasses
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.gcloud import (
    MINUTE,
    NO_GCLOUD,
    CommandResult,
    ErrorType,
    Gcloud,
    Trouble,
    trouble_of,
    trouble_of_ssh,
)
from hackmatrix.cloud.tpu.hosts import look_command
from hackmatrix.cloud.tpu.worker import PREFIX
from hackmatrix.core.processes import RESTART_ME

# --- Observed states of a TPU: of its request, of itself, its hosts and its run -------------------


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


# --- Looks at a TPU: asks gcloud what `decide` needs to know --------------------------------------


_PATIENCE = 3 * MINUTE  # for a command that only looks
_PATIENCE_WITH_SSH = MINUTE  # gcloud tries ssh ten times, which can take much longer


class NoAnswer(Exception):
    """gcloud failed to tell."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(str(trouble))
        self.trouble = trouble


def look(tpu: Description, gcloud: Gcloud, after: int, now: datetime) -> Observed:
    """The present state of a TPU.

    Args:
        tpu: the TPU.
        gcloud: runs commands.
        after: number of lines of the log that are known here.
        now: the time, with its zone.
    """
    overdue = tpu.last_day is not None and now.date() > tpu.last_day
    observed = Observed(time=now, overdue=overdue)
    try:
        observed = _with_states(observed, tpu, gcloud)
        if observed.node is TpuNode.READY:
            observed = _with_hosts(observed, tpu, gcloud, after)
        if tpu.bucket is not None:
            observed = dataclasses.replace(observed, run=_run(tpu, gcloud))
    except NoAnswer as error:
        return dataclasses.replace(observed, trouble=error.trouble)
    return observed


def look_lines(tpu: Description) -> list[commands.Argv]:
    """The command lines of a look at a TPU that is ready."""
    lines = [commands.describe_request(tpu), commands.describe(tpu)]
    lines.append(commands.ssh(tpu, look_command(tpu, 0)))
    return lines if tpu.bucket is None else [*lines, commands.list_run(tpu)]


def trouble_of_line(argv: commands.Argv, result: CommandResult) -> Trouble | None:
    """The error of a command line, if it failed."""
    on_hosts = argv[3] == "tpu-vm" and argv[4] in ("ssh", "scp")
    return _trouble_in_ssh(result) if on_hosts else _trouble_in(result)


def _trouble_in(result: CommandResult) -> Trouble | None:
    if result.code == 0:
        return None
    if result == NO_GCLOUD:
        return Trouble(ErrorType.NO_GCLOUD, "")
    return trouble_of(result.err)


def _trouble_in_ssh(result: CommandResult) -> Trouble | None:
    if result.code == 0 or result == NO_GCLOUD:
        return _trouble_in(result)
    return trouble_of_ssh(result.code, f"{result.err}\n{result.out}" if result.out else result.err)


def _with_states(observed: Observed, tpu: Description, gcloud: Gcloud) -> Observed:
    request = _describe(gcloud, commands.describe_request(tpu))
    state: dict[str, Any] = request.get("state", {}) if request else {}
    node = _describe(gcloud, commands.describe(tpu))
    failed = (state.get("failedData") or {}).get("error") or {}
    return dataclasses.replace(
        observed,
        queue=state_of(Queue, str(state.get("state", ""))) if request else Queue.ABSENT,
        queue_trouble=trouble_of(str(failed["message"])) if failed.get("message") else None,
        node=state_of(TpuNode, str(node.get("state", ""))) if node else TpuNode.ABSENT,
        created=_moment(str(node.get("createTime", ""))) if node else None,
    )


def _describe(gcloud: Gcloud, argv: commands.Argv) -> dict[str, Any] | None:
    """The output of a describe command; None if there is no such thing."""
    result = gcloud.run(argv, timeout=_PATIENCE, quiet=True)
    trouble = _trouble_in(result)
    if trouble is None:
        found = read_object(result.out)
        if not found:
            raise NoAnswer(Trouble(ErrorType.UNKNOWN, f"it printed no JSON: {result.out!r:.80}"))
        return found
    if trouble.error_type is ErrorType.NOT_FOUND:
        return None
    raise NoAnswer(trouble)


def _with_hosts(observed: Observed, tpu: Description, gcloud: Gcloud, after: int) -> Observed:
    argv = commands.ssh(tpu, look_command(tpu, after))
    result = gcloud.run(argv, timeout=_PATIENCE_WITH_SSH, quiet=True)
    reports = reports_of_hosts(result.out)
    if len(reports) < tpu.slice.hosts:
        trouble = _trouble_in_ssh(result)
        if trouble is not None and trouble.error_type in (
            ErrorType.AUTH,
            ErrorType.SSH_KEY,
            ErrorType.NO_GCLOUD,
        ):
            raise NoAnswer(trouble)
        return dataclasses.replace(observed, hosts=Hosts.UNREACHABLE)
    hosts, code, last_lines = combine(reports, tpu.slice.hosts)
    return dataclasses.replace(
        observed,
        hosts=hosts,
        code=code,
        last_lines=last_lines,
        log=log_of(reports, after),
        run=run_on_hosts(reports),
    )


def _run(tpu: Description, gcloud: Gcloud) -> TpuRun:
    result = gcloud.run(commands.list_run(tpu), timeout=_PATIENCE, quiet=True)
    trouble = _trouble_in(result)
    if trouble is not None and "matched no objects" not in trouble.message:
        raise NoAnswer(
            Trouble(ErrorType.NO_BUCKET, trouble.message)
            if trouble.error_type is ErrorType.NOT_FOUND
            else trouble
        )
    return run_in_bucket(result.out, tpu.job)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
