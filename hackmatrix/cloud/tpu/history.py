"""The steps of a run, and what happened before."""

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from hackmatrix.cloud.tpu.gcloud import ErrorType
from hackmatrix.cloud.tpu.probe import Hosts, Observed, Queue, TpuNode


class Action(Enum):
    """The next step; `hackmatrix.cloud.tpu.run` has its gcloud lines."""

    CREATE = "create"
    START = "start"
    SET_UP = "set up"
    TRAIN = "train"
    RETRY = "set up and train again"
    FETCH = "fetch"
    DELETE = "delete"
    WAIT = "wait"
    DONE = "done"
    STOP = "stop"


class HistoryStep(NamedTuple):
    """The next thing to do."""

    action: Action
    reason: str  # why, for the user
    wait: float = 0.0  # seconds to wait afterwards
    code: int = 0  # exit code of DONE and STOP
    last_words: tuple[str, ...] = ()  # of training that ended in an error
    failed: bool = False  # STOP because training, or setting up for it, failed


@dataclass(frozen=True)
class TpuHistory:
    """The events since `hackmatrix tpu run` was started."""

    retry: bool = False  # the user wants training that failed to be tried again
    keep: bool = False  # the user keeps the TPU when training is finished
    delete_on_failure: bool = False  # the user keeps no TPU on which the run failed
    failure: "HistoryStep | None" = None  # the end to which that has come, once the TPU is gone
    worked: bool = False  # gcloud has answered
    reached: bool = False  # the hosts have answered
    finished: bool = False  # training has ended well
    fetched: bool = False  # the run is on this machine
    fetches: int = 0  # tries to get it here
    attempts: int = 0  # that met trouble, in a row
    unknown: int = 0  # errors that are not known, in a row
    setups: int = 0  # that failed, in a row
    silent: int = 0  # looks without an answer of the hosts, nor a new checkpoint
    not_ready: int = 0  # looks at a TPU that does not get ready
    going: int = 0  # looks at what is being deleted or suspended
    mixed: int = 0  # looks at hosts in different states
    losses: int = 0  # TPUs lost since training last ran
    restarts: int = 0  # of training since the last new checkpoint
    checkpoint: int | None = None  # newest one seen
    looked: datetime | None = None  # time of the last look that told the TPU's state
    node: TpuNode = TpuNode.ABSENT  # that state
    ready: float = 0.0  # seconds for which this TPU was READY, at most


def remember(
    memory: TpuHistory, observed: Observed, step: HistoryStep, succeeded: bool
) -> TpuHistory:
    """The history after a step.

    Args:
        memory: what was known before.
        observed: what the step was decided on.
        step: what was done.
        succeeded: whether its command succeeded.
    """
    trouble = observed.trouble
    unknown = trouble is not None and trouble.error_type is ErrorType.UNKNOWN
    answered = observed.hosts not in (Hosts.UNSEEN, Hosts.UNREACHABLE)
    newer = (observed.run.checkpoint or 0) > (memory.checkpoint or 0)
    if trouble is None:
        ready = ready_seconds(memory, observed)
        memory = dataclasses.replace(memory, ready=ready, looked=observed.time, node=observed.node)
    waits_for_ready = observed.node not in (TpuNode.READY, TpuNode.ABSENT) or _is_unlisted(observed)
    after = dataclasses.replace(
        memory,
        worked=memory.worked or trouble is None,
        reached=memory.reached or answered,
        finished=memory.finished or observed.is_finished,
        attempts=memory.attempts + (trouble is not None) if trouble or not succeeded else 0,
        unknown=memory.unknown + unknown if unknown or not succeeded else 0,
        setups=memory.setups + 1
        if trouble and trouble.error_type is ErrorType.SETUP
        else memory.setups,
        silent=memory.silent + 1 if observed.hosts is Hosts.UNREACHABLE and not newer else 0,
        not_ready=memory.not_ready + 1 if waits_for_ready else 0,
        going=memory.going + 1 if observed.is_going else 0,
        mixed=memory.mixed + 1 if observed.hosts is Hosts.MIXED else 0,
        fetches=memory.fetches + (step.action is Action.FETCH),
        restarts=0 if newer else memory.restarts,
        checkpoint=observed.run.checkpoint if newer else memory.checkpoint,
    )
    if observed.hosts is Hosts.TRAINING:
        after = dataclasses.replace(after, losses=0, setups=0)
    if not succeeded:
        return after
    changes: dict[Action, dict[str, Any]] = {
        Action.FETCH: {"fetched": True},
        Action.DELETE: {"losses": after.losses + 1, "silent": 0, "not_ready": 0, "going": 0},
        Action.RETRY: {"retry": False},
        Action.SET_UP: {"setups": 0},
        Action.TRAIN: {"restarts": after.restarts + (observed.hosts is not Hosts.IDLE)},
    }
    return dataclasses.replace(after, **changes.get(step.action, {}))


def ready_seconds(memory: TpuHistory, observed: Observed) -> float:
    """Seconds for which a TPU was READY, at most, up to a look that tells its state.

    The time between two looks counts whole if it is READY at one of them; that before the first
    look too, as nobody knows.
    """
    if observed.node is TpuNode.ABSENT or observed.time is None:
        return 0.0
    since = memory.looked or observed.created or observed.time
    counts = memory.looked is None or TpuNode.READY in (memory.node, observed.node)
    return memory.ready + counts * max(0.0, (observed.time - since).total_seconds())


def _is_unlisted(observed: Observed) -> bool:
    return observed.queue is Queue.ACTIVE and observed.node is TpuNode.ABSENT
