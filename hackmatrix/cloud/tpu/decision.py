"""The next step with a TPU: a pure function of what is observed and what happened before.

`decide` runs no command and reads no clock, so every state is a row of a table in its tests. What
it remembers (`TpuHistory`) only spaces out attempts and counts them: `hackmatrix tpu run` may be
killed at any moment and started again without it.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from hackmatrix.cloud.tpu.gcloud import ErrorType, what_to_do
from hackmatrix.cloud.tpu.probe import RESTART_CODES, Hosts, Observed, Queue, TpuNode, TpuRun

LOOK_AGAIN = 30.0  # seconds, while something changes by itself
FOLLOW = 60.0  # seconds between looks at training
FIRST_RETRY = 15.0
LONGEST_RETRY = 300.0
SSH_NEVER_WORKED = 10  # looks after which a person must look
SILENT = 30  # looks without an answer and without a new checkpoint: the TPU is lost
NOT_READY = 40  # looks at a TPU that does not get ready: it is lost
GOING = 40  # looks at what is being deleted or suspended, before it is deleted once more
NOT_LISTED = 3  # looks at an active request without a TPU
UNKNOWN_ERRORS = 5
SETUPS = 3
FETCHES = 3  # tries after the end date, before the TPU is deleted all the same
MIXED = 3  # looks after which hosts that stopped are not only late
RESTARTS = 3  # without a new checkpoint
_INTERRUPTED = 130


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


def decide(observed: Observed, memory: TpuHistory) -> HistoryStep:
    """The next step. The first rule that has one decides."""
    rules: tuple[Callable[[Observed, TpuHistory], HistoryStep | None], ...] = (
        _about_trouble,
        _about_end_date,
        _about_failed_run,
        _about_finished_run,
        _about_stuck,
        _about_request,
        _about_node,
        _about_hosts,
    )
    return next(step for rule in rules if (step := rule(observed, memory)) is not None)


def backoff(attempts: int) -> float:
    """Seconds to wait after some failed attempts: 15, 30, 60, ... up to 5 minutes."""
    return min(LONGEST_RETRY, FIRST_RETRY * 2 ** min(attempts, 10))


def _about_trouble(observed: Observed, memory: TpuHistory) -> HistoryStep | None:
    """Errors of gcloud: what only a person can change stops, anything else is tried again."""
    trouble = observed.trouble
    if trouble is None or trouble.error_type in (ErrorType.EXISTS, ErrorType.NOT_FOUND):
        return None
    advice = what_to_do(trouble.error_type)
    reason = f"{trouble}: {advice}" if advice else str(trouble)
    stops = {
        ErrorType.NO_GCLOUD: True,
        ErrorType.SSH_KEY: True,
        ErrorType.AUTH: not memory.worked,  # else the user may be asleep, and logs in later
        ErrorType.PERMISSION: True,
        ErrorType.INVALID: True,
        ErrorType.NO_BUCKET: True,
        ErrorType.NO_QUOTA: True,
        ErrorType.SETUP: memory.setups + 1 >= SETUPS,
        ErrorType.UNKNOWN: memory.unknown + 1 >= UNKNOWN_ERRORS,
    }
    if stops.get(trouble.error_type, False):
        failed = trouble.error_type is ErrorType.SETUP
        return (
            _stop_after_failure(observed, memory, reason)
            if failed
            else HistoryStep(Action.STOP, reason, code=1)
        )
    again = "trying again, for ever"
    if trouble.error_type is ErrorType.AUTH:
        again = "training goes on meanwhile; this goes on when you are logged in"
    return HistoryStep(Action.WAIT, f"{reason}; {again}", backoff(memory.attempts))


def _about_end_date(observed: Observed, memory: TpuHistory) -> HistoryStep | None:
    if not observed.overdue:
        return None
    if not _exists(observed):
        return HistoryStep(
            Action.STOP, "the end date has passed, and nothing is left that costs", code=1
        )
    return _fetch_and_delete(observed, memory, "the end date has passed")


def _about_failed_run(observed: Observed, memory: TpuHistory) -> HistoryStep | None:
    """With `--delete-on-failure`, after training or setting up failed."""
    if memory.failure is None:
        return None
    if not _exists(observed):
        return memory.failure
    return _fetch_and_delete(observed, memory, "the run failed")


def _about_finished_run(observed: Observed, memory: TpuHistory) -> HistoryStep | None:
    if not (observed.is_finished or memory.finished):
        return None
    if not (memory.fetched or observed.is_finished or observed.run.exists):
        return None  # it went with its TPU, as there is no bucket
    if not memory.fetched:
        return HistoryStep(Action.FETCH, "training is finished")
    if memory.keep or not _exists(observed):
        left = "; the TPU is kept, and costs until it is deleted" if _exists(observed) else ""
        return HistoryStep(Action.DONE, f"the run is here{left}")
    if _deletes_itself(observed):
        return _wait_for_deletion(observed, memory)
    return HistoryStep(Action.DELETE, "the run is here: deleting the TPU", LOOK_AGAIN)


def _about_stuck(observed: Observed, memory: TpuHistory) -> HistoryStep | None:
    return _wait_for_deletion(observed, memory) if observed.is_going else None


def _about_request(observed: Observed, memory: TpuHistory) -> HistoryStep | None:
    """The states of a request in the queue."""
    match observed.queue:
        case Queue.ABSENT if observed.node is TpuNode.ABSENT:
            return HistoryStep(
                Action.CREATE, f"there is no TPU: asking for one{_resumes(observed.run)}"
            )
        case Queue.ABSENT | Queue.ACTIVE:
            return None
        case Queue.FAILED | Queue.SUSPENDED:
            why = f": {observed.queue_trouble}" if observed.queue_trouble else ""
            if observed.queue_trouble and observed.queue_trouble.error_type in (
                ErrorType.INVALID,
                ErrorType.PERMISSION,
                ErrorType.NO_QUOTA,
            ):
                advice = what_to_do(observed.queue_trouble.error_type)
                reason = (
                    f"the request failed{why}: {advice}; `hackmatrix tpu delete FILE` removes it"
                )
                return HistoryStep(Action.STOP, reason, code=1)
            reason = (
                f"the request is {observed.queue}{why}; deleting it, as it holds quota until then"
            )
            return HistoryStep(Action.DELETE, reason, backoff(memory.losses))
        case _:
            return HistoryStep(
                Action.WAIT, f"the request waits in the queue: {observed.queue}", FOLLOW
            )


def _about_node(observed: Observed, memory: TpuHistory) -> HistoryStep | None:
    """The states of the TPU."""
    match observed.node:
        case TpuNode.READY:
            return None
        case TpuNode.PREEMPTED | TpuNode.TERMINATED | TpuNode.UNKNOWN:
            reason = f"the TPU is {observed.node}; deleting it, as it holds quota until then"
            return HistoryStep(
                Action.DELETE, reason, backoff(memory.losses) if memory.losses else 0
            )
        case TpuNode.STOPPED:
            return HistoryStep(Action.START, "the TPU is stopped", LOOK_AGAIN)
    limit = NOT_LISTED if observed.node is TpuNode.ABSENT else NOT_READY
    state = "gone" if observed.node is TpuNode.ABSENT else str(observed.node)
    if memory.not_ready + 1 < limit:
        return HistoryStep(Action.WAIT, f"the TPU is {state}", LOOK_AGAIN)
    reason = f"the TPU is {state} and did not get ready in {limit} looks: it is lost; deleting it"
    return HistoryStep(Action.DELETE, reason, backoff(memory.losses))


def _about_hosts(observed: Observed, memory: TpuHistory) -> HistoryStep:
    """The states of the hosts of a TPU that is ready."""
    match observed.hosts:
        case Hosts.UNREACHABLE | Hosts.UNSEEN:
            return _about_silence(observed, memory)
        case Hosts.BARE:
            return HistoryStep(Action.SET_UP, "setting the hosts up, some minutes")
        case Hosts.IDLE:
            return HistoryStep(Action.TRAIN, f"training{_resumes(observed.run)}", LOOK_AGAIN)
        case Hosts.TRAINING:
            newest = observed.run.checkpoint
            reason = "training" if newest is None else f"training, newest checkpoint {newest}"
            return HistoryStep(Action.WAIT, reason, FOLLOW)
        case Hosts.BUSY:
            reason = "the TPU trains something else: `hackmatrix tpu attach FILE` shows it"
            return HistoryStep(Action.STOP, reason, code=1)
        case Hosts.MIXED if memory.mixed + 1 < MIXED:
            return HistoryStep(Action.WAIT, f"{observed.hosts}: waiting for the others", LOOK_AGAIN)
        case Hosts.MIXED | Hosts.VANISHED:
            return _restart(observed, memory, str(observed.hosts))
    return _about_end(observed, memory)


def _about_silence(observed: Observed, memory: TpuHistory) -> HistoryStep:
    silent = memory.silent + 1
    if silent >= SSH_NEVER_WORKED and not memory.reached and observed.run.checkpoint is None:
        reason = f"the TPU is READY and ssh never worked: {what_to_do(ErrorType.SSH)}"
        return HistoryStep(Action.STOP, reason, code=1)
    if silent < SILENT:
        reason = f"the hosts do not answer, {silent} times now"
        return HistoryStep(Action.WAIT, reason, min(FOLLOW, backoff(memory.silent)))
    reason = f"no answer and no new checkpoint in {silent} looks: the TPU is lost; deleting it"
    return HistoryStep(Action.DELETE, reason, backoff(memory.losses))


def _about_end(observed: Observed, memory: TpuHistory) -> HistoryStep:
    """Training ended with an exit code that is not 0."""
    if memory.retry:
        return HistoryStep(Action.RETRY, "trying again with the newest code", LOOK_AGAIN)
    if observed.code in RESTART_CODES:
        return _restart(
            observed, memory, f"training was ended from outside (exit code {observed.code})"
        )
    reason = f"training failed with exit code {observed.code}"
    if observed.code == _INTERRUPTED:
        reason = "training was stopped by Ctrl-C"
    return _stop_after_failure(
        observed, memory, reason, "; `hackmatrix tpu run FILE --retry` takes the newest code"
    )


def _restart(observed: Observed, memory: TpuHistory, why: str) -> HistoryStep:
    if memory.restarts < RESTARTS:
        return HistoryStep(
            Action.TRAIN, f"{why}: training again{_resumes(observed.run)}", LOOK_AGAIN
        )
    return _stop_after_failure(
        observed, memory, f"{why}, {RESTARTS} times without a new checkpoint"
    )


def _stop_after_failure(
    observed: Observed, memory: TpuHistory, reason: str, advice: str = ""
) -> HistoryStep:
    if not memory.delete_on_failure:
        reason += ". The TPU is still there, and costs: `hackmatrix tpu logs FILE` shows more, "
        reason += f"`hackmatrix tpu delete FILE` ends it{advice}"
    last = tuple(f"  {line}" for line in observed.last_lines)
    return HistoryStep(Action.STOP, reason, code=1, last_words=last, failed=True)


def _fetch_and_delete(observed: Observed, memory: TpuHistory, why: str) -> HistoryStep:
    """Fetches what is there, then deletes the TPU."""
    if _deletes_itself(observed):
        return _wait_for_deletion(observed, memory)
    if observed.run.exists and not memory.fetched and memory.fetches < FETCHES:
        return HistoryStep(Action.FETCH, f"{why}: fetching what is there")
    return HistoryStep(Action.DELETE, why, LOOK_AGAIN)


def _wait_for_deletion(observed: Observed, memory: TpuHistory) -> HistoryStep:
    of_request = observed.queue in (Queue.DELETING, Queue.SUSPENDING)
    what = f"the request is {observed.queue}" if of_request else f"the TPU is {observed.node}"
    if memory.going + 1 < GOING:
        return HistoryStep(Action.WAIT, what, LOOK_AGAIN)
    return HistoryStep(
        Action.DELETE, f"{what}, {GOING} looks long: deleting it once more", LOOK_AGAIN
    )


def _exists(observed: Observed) -> bool:
    return observed.queue is not Queue.ABSENT or observed.node is not TpuNode.ABSENT


def _deletes_itself(observed: Observed) -> bool:
    return observed.queue is Queue.DELETING or observed.node is TpuNode.DELETING


def _resumes(run: TpuRun) -> str:
    if not run.exists:
        return ""
    return ", from the run's start" if run.checkpoint is None else f", from {run.checkpoint}"
