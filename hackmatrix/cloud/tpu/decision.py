"""The next step with a TPU: a pure function of what is observed and what happened before.

`decide` runs no command and reads no clock, so every state is a row of a table in its tests. What
it remembers (`TpuHistory`) only spaces out attempts and counts them: `hackmatrix tpu run` may be
killed at any moment and started again without it.
"""

from collections.abc import Callable

from hackmatrix.cloud.tpu.gcloud_errors import ErrorType, what_to_do
from hackmatrix.cloud.tpu.history import Action, HistoryStep, TpuHistory
from hackmatrix.cloud.tpu.observed import RESTART_CODES, Hosts, Observed, Queue, TpuNode, TpuRun

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


def decide(seen: Observed, memory: TpuHistory) -> HistoryStep:
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
    return next(step for rule in rules if (step := rule(seen, memory)) is not None)


def backoff(attempts: int) -> float:
    """Seconds to wait after some failed attempts: 15, 30, 60, ... up to 5 minutes."""
    return min(LONGEST_RETRY, FIRST_RETRY * 2 ** min(attempts, 10))


def _about_trouble(seen: Observed, memory: TpuHistory) -> HistoryStep | None:
    """Errors of gcloud: what only a person can change stops, anything else is tried again."""
    trouble = seen.trouble
    if trouble is None or trouble.kind in (ErrorType.EXISTS, ErrorType.NOT_FOUND):
        return None
    advice = what_to_do(trouble.kind)
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
    if stops.get(trouble.kind, False):
        failed = trouble.kind is ErrorType.SETUP
        return (
            _stop_after_failure(seen, memory, reason)
            if failed
            else HistoryStep(Action.STOP, reason, code=1)
        )
    again = "trying again, for ever"
    if trouble.kind is ErrorType.AUTH:
        again = "training goes on meanwhile; this goes on when you are logged in"
    return HistoryStep(Action.WAIT, f"{reason}; {again}", backoff(memory.attempts))


def _about_end_date(seen: Observed, memory: TpuHistory) -> HistoryStep | None:
    if not seen.overdue:
        return None
    if not _exists(seen):
        return HistoryStep(
            Action.STOP, "the end date has passed, and nothing is left that costs", code=1
        )
    return _fetch_and_delete(seen, memory, "the end date has passed")


def _about_failed_run(seen: Observed, memory: TpuHistory) -> HistoryStep | None:
    """With `--delete-on-failure`, after training or setting up failed."""
    if memory.failure is None:
        return None
    if not _exists(seen):
        return memory.failure
    return _fetch_and_delete(seen, memory, "the run failed")


def _about_finished_run(seen: Observed, memory: TpuHistory) -> HistoryStep | None:
    if not (seen.finished or memory.finished):
        return None
    if not (memory.fetched or seen.finished or seen.run.exists):
        return None  # it went with its TPU, as there is no bucket
    if not memory.fetched:
        return HistoryStep(Action.FETCH, "training is finished")
    if memory.keep or not _exists(seen):
        left = "; the TPU is kept, and costs until it is deleted" if _exists(seen) else ""
        return HistoryStep(Action.DONE, f"the run is here{left}")
    if _deletes_itself(seen):
        return _wait_for_deletion(seen, memory)
    return HistoryStep(Action.DELETE, "the run is here: deleting the TPU", LOOK_AGAIN)


def _about_stuck(seen: Observed, memory: TpuHistory) -> HistoryStep | None:
    return _wait_for_deletion(seen, memory) if seen.is_going else None


def _about_request(seen: Observed, memory: TpuHistory) -> HistoryStep | None:
    """The states of a request in the queue."""
    match seen.queue:
        case Queue.ABSENT if seen.node is TpuNode.ABSENT:
            return HistoryStep(
                Action.CREATE, f"there is no TPU: asking for one{_resumes(seen.run)}"
            )
        case Queue.ABSENT | Queue.ACTIVE:
            return None
        case Queue.FAILED | Queue.SUSPENDED:
            why = f": {seen.queue_trouble}" if seen.queue_trouble else ""
            if seen.queue_trouble and seen.queue_trouble.kind in (
                ErrorType.INVALID,
                ErrorType.PERMISSION,
                ErrorType.NO_QUOTA,
            ):
                advice = what_to_do(seen.queue_trouble.kind)
                reason = (
                    f"the request failed{why}: {advice}; `hackmatrix tpu delete FILE` removes it"
                )
                return HistoryStep(Action.STOP, reason, code=1)
            reason = f"the request is {seen.queue}{why}; deleting it, as it holds quota until then"
            return HistoryStep(Action.DELETE, reason, backoff(memory.losses))
        case _:
            return HistoryStep(Action.WAIT, f"the request waits in the queue: {seen.queue}", FOLLOW)


def _about_node(seen: Observed, memory: TpuHistory) -> HistoryStep | None:
    """The states of the TPU."""
    match seen.node:
        case TpuNode.READY:
            return None
        case TpuNode.PREEMPTED | TpuNode.TERMINATED | TpuNode.UNKNOWN:
            reason = f"the TPU is {seen.node}; deleting it, as it holds quota until then"
            return HistoryStep(
                Action.DELETE, reason, backoff(memory.losses) if memory.losses else 0
            )
        case TpuNode.STOPPED:
            return HistoryStep(Action.START, "the TPU is stopped", LOOK_AGAIN)
    limit = NOT_LISTED if seen.node is TpuNode.ABSENT else NOT_READY
    state = "gone" if seen.node is TpuNode.ABSENT else str(seen.node)
    if memory.not_ready + 1 < limit:
        return HistoryStep(Action.WAIT, f"the TPU is {state}", LOOK_AGAIN)
    reason = f"the TPU is {state} and did not get ready in {limit} looks: it is lost; deleting it"
    return HistoryStep(Action.DELETE, reason, backoff(memory.losses))


def _about_hosts(seen: Observed, memory: TpuHistory) -> HistoryStep:
    """The states of the hosts of a TPU that is ready."""
    match seen.hosts:
        case Hosts.UNREACHABLE | Hosts.UNSEEN:
            return _about_silence(seen, memory)
        case Hosts.BARE:
            return HistoryStep(Action.SET_UP, "setting the hosts up, some minutes")
        case Hosts.IDLE:
            return HistoryStep(Action.TRAIN, f"training{_resumes(seen.run)}", LOOK_AGAIN)
        case Hosts.TRAINING:
            newest = seen.run.checkpoint
            reason = "training" if newest is None else f"training, newest checkpoint {newest}"
            return HistoryStep(Action.WAIT, reason, FOLLOW)
        case Hosts.BUSY:
            reason = "the TPU trains something else: `hackmatrix tpu attach FILE` shows it"
            return HistoryStep(Action.STOP, reason, code=1)
        case Hosts.MIXED if memory.mixed + 1 < MIXED:
            return HistoryStep(Action.WAIT, f"{seen.hosts}: waiting for the others", LOOK_AGAIN)
        case Hosts.MIXED | Hosts.VANISHED:
            return _restart(seen, memory, str(seen.hosts))
    return _about_end(seen, memory)


def _about_silence(seen: Observed, memory: TpuHistory) -> HistoryStep:
    silent = memory.silent + 1
    if silent >= SSH_NEVER_WORKED and not memory.reached and seen.run.checkpoint is None:
        reason = f"the TPU is READY and ssh never worked: {what_to_do(ErrorType.SSH)}"
        return HistoryStep(Action.STOP, reason, code=1)
    if silent < SILENT:
        reason = f"the hosts do not answer, {silent} times now"
        return HistoryStep(Action.WAIT, reason, min(FOLLOW, backoff(memory.silent)))
    reason = f"no answer and no new checkpoint in {silent} looks: the TPU is lost; deleting it"
    return HistoryStep(Action.DELETE, reason, backoff(memory.losses))


def _about_end(seen: Observed, memory: TpuHistory) -> HistoryStep:
    """Training ended with an exit code that is not 0."""
    if memory.retry:
        return HistoryStep(Action.RETRY, "trying again with the newest code", LOOK_AGAIN)
    if seen.code in RESTART_CODES:
        return _restart(seen, memory, f"training was ended from outside (exit code {seen.code})")
    reason = f"training failed with exit code {seen.code}"
    if seen.code == _INTERRUPTED:
        reason = "training was stopped by Ctrl-C"
    return _stop_after_failure(
        seen, memory, reason, "; `hackmatrix tpu run FILE --retry` takes the newest code"
    )


def _restart(seen: Observed, memory: TpuHistory, why: str) -> HistoryStep:
    if memory.restarts < RESTARTS:
        return HistoryStep(Action.TRAIN, f"{why}: training again{_resumes(seen.run)}", LOOK_AGAIN)
    return _stop_after_failure(seen, memory, f"{why}, {RESTARTS} times without a new checkpoint")


def _stop_after_failure(
    seen: Observed, memory: TpuHistory, words: str, advice: str = ""
) -> HistoryStep:
    if not memory.delete_on_failure:
        words += ". The TPU is still there, and costs: `hackmatrix tpu logs FILE` shows more, "
        words += f"`hackmatrix tpu delete FILE` ends it{advice}"
    last = tuple(f"  {line}" for line in seen.words)
    return HistoryStep(Action.STOP, words, code=1, last_words=last, failed=True)


def _fetch_and_delete(seen: Observed, memory: TpuHistory, why: str) -> HistoryStep:
    """Fetches what is there, then deletes the TPU."""
    if _deletes_itself(seen):
        return _wait_for_deletion(seen, memory)
    if seen.run.exists and not memory.fetched and memory.fetches < FETCHES:
        return HistoryStep(Action.FETCH, f"{why}: fetching what is there")
    return HistoryStep(Action.DELETE, why, LOOK_AGAIN)


def _wait_for_deletion(seen: Observed, memory: TpuHistory) -> HistoryStep:
    of_request = seen.queue in (Queue.DELETING, Queue.SUSPENDING)
    what = f"the request is {seen.queue}" if of_request else f"the TPU is {seen.node}"
    if memory.going + 1 < GOING:
        return HistoryStep(Action.WAIT, what, LOOK_AGAIN)
    return HistoryStep(
        Action.DELETE, f"{what}, {GOING} looks long: deleting it once more", LOOK_AGAIN
    )


def _exists(seen: Observed) -> bool:
    return seen.queue is not Queue.ABSENT or seen.node is not TpuNode.ABSENT


def _deletes_itself(seen: Observed) -> bool:
    return seen.queue is Queue.DELETING or seen.node is TpuNode.DELETING


def _resumes(run: TpuRun) -> str:
    if not run.exists:
        return ""
    return ", from the run's start" if run.checkpoint is None else f", from {run.checkpoint}"
