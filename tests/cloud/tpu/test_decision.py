"""The next step, as a table: every state of the API, of hosts, of errors."""

import dataclasses
import datetime

import pytest

from hackmatrix.cloud.tpu import decision
from hackmatrix.cloud.tpu.decision import backoff, decide
from hackmatrix.cloud.tpu.gcloud import ErrorType, Trouble
from hackmatrix.cloud.tpu.history import Action, HistoryStep, TpuHistory, remember
from hackmatrix.cloud.tpu.probe import Hosts, Observed, Queue, TpuNode, TpuRun

READY = Observed(queue=Queue.ACTIVE, node=TpuNode.READY, hosts=Hosts.TRAINING)
NEW = TpuHistory()
NOON = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)

OF_QUEUE = {
    Queue.ABSENT: Action.CREATE,
    Queue.STATE_UNSPECIFIED: Action.WAIT,
    Queue.CREATING: Action.WAIT,
    Queue.ACCEPTED: Action.WAIT,
    Queue.WAITING_FOR_RESOURCES: Action.WAIT,
    Queue.PROVISIONING: Action.WAIT,
    Queue.ACTIVE: Action.WAIT,  # for its TPU to be listed
    Queue.SUSPENDING: Action.WAIT,
    Queue.SUSPENDED: Action.DELETE,
    Queue.FAILED: Action.DELETE,
    Queue.DELETING: Action.WAIT,
}
OF_NODE = {
    TpuNode.ABSENT: Action.WAIT,
    TpuNode.STATE_UNSPECIFIED: Action.WAIT,
    TpuNode.CREATING: Action.WAIT,
    TpuNode.READY: Action.SET_UP,
    TpuNode.RESTARTING: Action.WAIT,
    TpuNode.REIMAGING: Action.WAIT,
    TpuNode.DELETING: Action.WAIT,
    TpuNode.REPAIRING: Action.WAIT,
    TpuNode.STOPPED: Action.START,
    TpuNode.STOPPING: Action.WAIT,
    TpuNode.STARTING: Action.WAIT,
    TpuNode.PREEMPTED: Action.DELETE,
    TpuNode.TERMINATED: Action.DELETE,
    TpuNode.HIDING: Action.WAIT,
    TpuNode.HIDDEN: Action.WAIT,
    TpuNode.UNHIDING: Action.WAIT,
    TpuNode.UNKNOWN: Action.DELETE,
}
# What a TPU that does not get ready comes to, after many looks.
LOST = {
    TpuNode.ABSENT,
    TpuNode.STATE_UNSPECIFIED,
    TpuNode.CREATING,
    TpuNode.RESTARTING,
    TpuNode.REIMAGING,
    TpuNode.REPAIRING,
    TpuNode.STARTING,
    TpuNode.HIDING,
    TpuNode.HIDDEN,
    TpuNode.UNHIDING,
}
OF_HOSTS = {
    Hosts.UNSEEN: Action.WAIT,
    Hosts.UNREACHABLE: Action.WAIT,
    Hosts.BARE: Action.SET_UP,
    Hosts.IDLE: Action.TRAIN,
    Hosts.TRAINING: Action.WAIT,
    Hosts.BUSY: Action.STOP,
    Hosts.MIXED: Action.WAIT,
    Hosts.VANISHED: Action.TRAIN,
    Hosts.ENDED: Action.FETCH,  # with exit code 0
}
OF_TROUBLE = {
    ErrorType.NO_GCLOUD: Action.STOP,
    ErrorType.AUTH: Action.STOP,
    ErrorType.SSH_KEY: Action.STOP,
    ErrorType.SSH: Action.WAIT,
    ErrorType.EXISTS: Action.CREATE,  # nothing was seen: as if it had not happened
    ErrorType.NOT_FOUND: Action.CREATE,
    ErrorType.NO_BUCKET: Action.STOP,
    ErrorType.NO_QUOTA: Action.STOP,
    ErrorType.QUOTA: Action.WAIT,
    ErrorType.CAPACITY: Action.WAIT,
    ErrorType.PERMISSION: Action.STOP,
    ErrorType.INVALID: Action.STOP,
    ErrorType.NETWORK: Action.WAIT,
    ErrorType.SETUP: Action.WAIT,
    ErrorType.UNKNOWN: Action.WAIT,
}


def ended(code: int) -> Observed:
    words, run = ("ValueError: no",), TpuRun(exists=True, checkpoint=4)
    return dataclasses.replace(READY, hosts=Hosts.ENDED, code=code, last_lines=words, run=run)


def test_the_tables_are_complete() -> None:
    assert set(OF_QUEUE) == set(Queue)
    assert set(OF_NODE) == set(TpuNode)
    assert set(OF_HOSTS) == set(Hosts)
    assert set(OF_TROUBLE) == set(ErrorType)


@pytest.mark.parametrize("queue", Queue)
def test_every_state_of_the_request(queue: Queue) -> None:
    assert decide(Observed(queue=queue), NEW).action is OF_QUEUE[queue]


@pytest.mark.parametrize("node", TpuNode)
def test_every_state_of_the_tpu(node: TpuNode) -> None:
    seen = Observed(queue=Queue.ACTIVE, node=node, hosts=Hosts.BARE)
    assert decide(seen, NEW).action is OF_NODE[node]
    if node is not TpuNode.ABSENT:  # made without a request
        direct = dataclasses.replace(seen, queue=Queue.ABSENT)
        assert decide(direct, NEW).action is OF_NODE[node]


@pytest.mark.parametrize("node", TpuNode)
def test_a_tpu_that_does_not_get_ready_is_lost(node: TpuNode) -> None:
    seen = Observed(queue=Queue.ACTIVE, node=node, hosts=Hosts.BARE)
    action = decide(seen, TpuHistory(not_ready=decision.NOT_READY)).action
    assert action is (Action.DELETE if node in LOST else OF_NODE[node])


@pytest.mark.parametrize("hosts", Hosts)
def test_every_state_of_the_hosts(hosts: Hosts) -> None:
    assert decide(dataclasses.replace(READY, hosts=hosts), NEW).action is OF_HOSTS[hosts]


@pytest.mark.parametrize("kind", ErrorType)
def test_every_kind_of_error(kind: ErrorType) -> None:
    step = decide(Observed(trouble=Trouble(kind, "said gcloud")), NEW)
    assert step.action is OF_TROUBLE[kind]
    if step.action is not Action.CREATE:
        assert "said gcloud" in step.reason
    assert (step.code == 1) == (step.action is Action.STOP)


@pytest.mark.parametrize(
    ("kind", "memory", "action"),
    [
        (ErrorType.AUTH, TpuHistory(worked=True), Action.WAIT),  # the user may be asleep
        (ErrorType.SETUP, TpuHistory(setups=decision.SETUPS - 1), Action.STOP),
        (ErrorType.UNKNOWN, TpuHistory(unknown=decision.UNKNOWN_ERRORS - 1), Action.STOP),
        (ErrorType.QUOTA, TpuHistory(attempts=10_000), Action.WAIT),  # for ever
        (ErrorType.CAPACITY, TpuHistory(attempts=10_000), Action.WAIT),
        (ErrorType.NETWORK, TpuHistory(attempts=10_000), Action.WAIT),
        (ErrorType.SSH, TpuHistory(attempts=10_000), Action.WAIT),
    ],
)
def test_errors_that_come_again(kind: ErrorType, memory: TpuHistory, action: Action) -> None:
    assert decide(Observed(trouble=Trouble(kind, "")), memory).action is action


@pytest.mark.parametrize(
    ("reason", "action"),
    [
        (None, Action.DELETE),
        (Trouble(ErrorType.CAPACITY, ""), Action.DELETE),
        (Trouble(ErrorType.QUOTA, ""), Action.DELETE),
        (Trouble(ErrorType.NO_QUOTA, ""), Action.STOP),
        (Trouble(ErrorType.PERMISSION, ""), Action.STOP),
        (Trouble(ErrorType.INVALID, ""), Action.STOP),
    ],
)
def test_a_request_that_failed(reason: Trouble | None, action: Action) -> None:
    assert decide(Observed(queue=Queue.FAILED, queue_trouble=reason), NEW).action is action


@pytest.mark.parametrize(
    ("code", "memory", "action"),
    [
        (0, NEW, Action.FETCH),
        (0, TpuHistory(fetched=True), Action.DELETE),
        (0, TpuHistory(fetched=True, keep=True), Action.DONE),
        (1, NEW, Action.STOP),
        (2, NEW, Action.STOP),
        (130, NEW, Action.STOP),
        (1, TpuHistory(retry=True), Action.RETRY),
        (75, NEW, Action.TRAIN),  # the parent process asks for it
        (129, NEW, Action.TRAIN),
        (134, NEW, Action.TRAIN),
        (137, NEW, Action.TRAIN),
        (143, NEW, Action.TRAIN),
        (137, TpuHistory(restarts=decision.RESTARTS), Action.STOP),
    ],
)
def test_training_that_ended(code: int, memory: TpuHistory, action: Action) -> None:
    step = decide(ended(code), memory)
    assert step.action is action
    if action is Action.STOP:
        assert step.code == 1
        assert "  ValueError: no" in step.last_words


@pytest.mark.parametrize(
    ("memory", "run", "action"),
    [
        (TpuHistory(silent=decision.SSH_NEVER_WORKED - 1), TpuRun(), Action.STOP),
        (TpuHistory(silent=decision.SSH_NEVER_WORKED - 1, reached=True), TpuRun(), Action.WAIT),
        (TpuHistory(silent=decision.SSH_NEVER_WORKED - 1), TpuRun(True, 7), Action.WAIT),
        (TpuHistory(silent=decision.SILENT - 1, reached=True), TpuRun(), Action.DELETE),
        (TpuHistory(silent=decision.SILENT - 1), TpuRun(True, 7), Action.DELETE),
    ],
)
def test_hosts_that_do_not_answer(memory: TpuHistory, run: TpuRun, action: Action) -> None:
    seen = dataclasses.replace(READY, hosts=Hosts.UNREACHABLE, run=run)
    assert decide(seen, memory).action is action


def test_new_checkpoints_show_that_silent_hosts_live() -> None:
    seen = dataclasses.replace(READY, hosts=Hosts.UNREACHABLE, run=TpuRun(True, 7))
    step = HistoryStep(Action.WAIT, "")
    memory = remember(TpuHistory(silent=20, checkpoint=6), seen, step, succeeded=True)
    assert memory.silent == 0
    assert remember(memory, seen, step, succeeded=True).silent == 1


def test_hosts_that_stay_mixed_train_again() -> None:
    seen = dataclasses.replace(READY, hosts=Hosts.MIXED)
    assert decide(seen, TpuHistory(mixed=decision.MIXED - 1)).action is Action.TRAIN


@pytest.mark.parametrize(
    ("seen", "memory", "action"),
    [
        (READY, NEW, Action.DELETE),
        (dataclasses.replace(READY, run=TpuRun(True, 4)), NEW, Action.FETCH),
        (dataclasses.replace(READY, run=TpuRun(True, 4)), TpuHistory(fetched=True), Action.DELETE),
        (dataclasses.replace(READY, run=TpuRun(True, 4)), TpuHistory(fetches=3), Action.DELETE),
        (Observed(queue=Queue.DELETING), NEW, Action.WAIT),
        (Observed(queue=Queue.WAITING_FOR_RESOURCES), NEW, Action.DELETE),
        (Observed(), NEW, Action.STOP),
    ],
)
def test_after_the_end_date_nothing_is_left(
    seen: Observed, memory: TpuHistory, action: Action
) -> None:
    assert decide(dataclasses.replace(seen, overdue=True), memory).action is action


@pytest.mark.parametrize(
    ("seen", "memory", "action"),
    [
        (Observed(), NEW, Action.FETCH),  # it finished while nobody looked, and was preempted
        (Observed(), TpuHistory(fetched=True), Action.DONE),
        (Observed(queue=Queue.SUSPENDED), TpuHistory(fetched=True), Action.DELETE),
        (Observed(queue=Queue.DELETING), TpuHistory(fetched=True), Action.WAIT),
        (READY, TpuHistory(fetched=True), Action.DELETE),
    ],
)
def test_a_finished_run_makes_no_new_tpu(
    seen: Observed, memory: TpuHistory, action: Action
) -> None:
    finished = dataclasses.replace(seen, run=TpuRun(True, 9, finished=True))
    assert decide(finished, memory).action is action


def test_a_finished_run_that_went_with_its_tpu_is_made_again() -> None:
    assert decide(Observed(), TpuHistory(finished=True)).action is Action.CREATE
    assert decide(Observed(), TpuHistory(finished=True, fetched=True)).action is Action.DONE


def test_a_new_tpu_resumes_from_the_newest_checkpoint() -> None:
    assert decide(Observed(run=TpuRun(True, 40)), NEW).reason.endswith(", from 40")


def test_waiting_grows_to_five_minutes_and_no_further() -> None:
    assert [backoff(n) for n in range(6)] == [15, 30, 60, 120, 240, 300]
    assert backoff(10**6) == 300


@pytest.mark.parametrize(
    ("looks", "minutes"),
    [
        (
            [(0, TpuNode.ABSENT), (9, TpuNode.CREATING), (20, TpuNode.READY), (30, TpuNode.READY)],
            21,
        ),
        ([(0, TpuNode.READY), (5, TpuNode.READY)], 65),  # made an hour before the first look
        (
            [(0, TpuNode.STOPPED), (50, TpuNode.STOPPED)],
            60,
        ),  # nobody knows whether it was READY before
        (
            [(0, TpuNode.ABSENT), (1, TpuNode.READY), (2, TpuNode.STOPPING), (90, TpuNode.STOPPED)],
            2,
        ),
        ([(0, TpuNode.ABSENT), (1, TpuNode.READY), (7, None), (90, TpuNode.READY)], 90),
        (
            [(0, TpuNode.READY), (1, TpuNode.ABSENT), (2, TpuNode.CREATING), (4, TpuNode.READY)],
            2,
        ),  # another
    ],
)
def test_the_time_for_which_a_tpu_was_ready(
    looks: list[tuple[int, TpuNode | None]], minutes: int
) -> None:
    memory = NEW
    for minute, node in looks:
        time = NOON + datetime.timedelta(minutes=minute)
        seen = Observed(node=node or TpuNode.ABSENT, created=NOON - HOUR, time=time)
        if node is None:  # gcloud does not answer
            seen = Observed(time=time, trouble=Trouble(ErrorType.NETWORK, ""))
        memory = remember(memory, seen, HistoryStep(Action.WAIT, ""), succeeded=True)
    assert memory.ready == minutes * 60


def test_what_is_remembered() -> None:
    def after(
        memory: TpuHistory, seen: Observed, action: Action, *, succeeded: bool = True
    ) -> TpuHistory:
        return remember(memory, seen, HistoryStep(action, ""), succeeded)

    assert after(NEW, READY, Action.WAIT).reached
    assert after(NEW, READY, Action.WAIT).worked
    assert after(NEW, READY, Action.FETCH).fetched
    assert not after(NEW, READY, Action.FETCH, succeeded=False).fetched
    assert after(NEW, Observed(), Action.DELETE).losses == 1
    assert after(TpuHistory(losses=3), READY, Action.WAIT).losses == 0
    assert not after(TpuHistory(retry=True), READY, Action.RETRY).retry
    gone = dataclasses.replace(READY, hosts=Hosts.VANISHED)
    assert after(NEW, gone, Action.TRAIN).restarts == 1
    assert (
        after(
            TpuHistory(restarts=2), dataclasses.replace(gone, run=TpuRun(True, 1)), Action.WAIT
        ).restarts
        == 0
    )
    failed = Observed(trouble=Trouble(ErrorType.SETUP, ""))
    assert (after(NEW, failed, Action.WAIT).setups, after(NEW, failed, Action.WAIT).attempts) == (
        1,
        1,
    )
