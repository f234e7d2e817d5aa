"""The next step, as a table: every state of the API, of hosts, of errors."""

import dataclasses
import datetime

import pytest

from hackmatrix.cloud.tpu import decision
from hackmatrix.cloud.tpu.decision import Action, HistoryStep, TpuHistory, decide, remember
from hackmatrix.cloud.tpu.gcloud import ErrorType, Trouble
from hackmatrix.cloud.tpu.probe import Hosts, Observed, Queue, TpuNode, TpuRun

READY = Observed(queue=Queue.ACTIVE, node=TpuNode.READY, hosts=Hosts.TRAINING)
NEW = TpuHistory()
NOON = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)

# What comes of each state; of all others, to wait.
OF_QUEUE = {
    Queue.ABSENT: Action.CREATE,
    Queue.SUSPENDED: Action.DELETE,
    Queue.FAILED: Action.DELETE,
}
OF_NODE = {
    TpuNode.READY: Action.SET_UP,
    TpuNode.STOPPED: Action.START,
    TpuNode.PREEMPTED: Action.DELETE,
    TpuNode.TERMINATED: Action.DELETE,
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
    Hosts.BARE: Action.SET_UP,
    Hosts.IDLE: Action.TRAIN,
    Hosts.BUSY: Action.STOP,
    Hosts.VANISHED: Action.TRAIN,
    Hosts.ENDED: Action.FETCH,  # with exit code 0
}
OF_TROUBLE = {
    ErrorType.NO_GCLOUD: Action.STOP,
    ErrorType.AUTH: Action.STOP,
    ErrorType.SSH_KEY: Action.STOP,
    ErrorType.EXISTS: Action.CREATE,  # nothing was seen: as if it had not happened
    ErrorType.NOT_FOUND: Action.CREATE,
    ErrorType.NO_BUCKET: Action.STOP,
    ErrorType.NO_QUOTA: Action.STOP,
    ErrorType.PERMISSION: Action.STOP,
    ErrorType.INVALID: Action.STOP,
}


def of_node(node: TpuNode) -> Action:
    return OF_NODE.get(node, Action.WAIT)


def ended(code: int) -> Observed:
    words, run = ("ValueError: no",), TpuRun(exists=True, checkpoint=4)
    return dataclasses.replace(READY, hosts=Hosts.ENDED, code=code, last_lines=words, run=run)


@pytest.mark.parametrize("queue", Queue)
def test_every_state_of_the_request(queue: Queue) -> None:
    assert decide(Observed(queue=queue), NEW).action is OF_QUEUE.get(queue, Action.WAIT)


@pytest.mark.parametrize("node", TpuNode)
def test_every_state_of_the_tpu(node: TpuNode) -> None:
    seen = Observed(queue=Queue.ACTIVE, node=node, hosts=Hosts.BARE)
    assert decide(seen, NEW).action is of_node(node)
    if node is not TpuNode.ABSENT:  # made without a request
        direct = dataclasses.replace(seen, queue=Queue.ABSENT)
        assert decide(direct, NEW).action is of_node(node)


@pytest.mark.parametrize("node", TpuNode)
def test_a_tpu_that_does_not_get_ready_is_lost(node: TpuNode) -> None:
    seen = Observed(queue=Queue.ACTIVE, node=node, hosts=Hosts.BARE)
    action = decide(seen, TpuHistory(not_ready=decision.NOT_READY)).action
    assert action is (Action.DELETE if node in LOST else of_node(node))


@pytest.mark.parametrize("hosts", Hosts)
def test_every_state_of_the_hosts(hosts: Hosts) -> None:
    assert decide(dataclasses.replace(READY, hosts=hosts), NEW).action is OF_HOSTS.get(
        hosts, Action.WAIT
    )


@pytest.mark.parametrize("kind", ErrorType)
def test_every_kind_of_error(kind: ErrorType) -> None:
    step = decide(Observed(trouble=Trouble(kind, "said gcloud")), NEW)
    assert step.action is OF_TROUBLE.get(kind, Action.WAIT)
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
    ],
)
def test_errors_that_come_again(kind: ErrorType, memory: TpuHistory, action: Action) -> None:
    assert decide(Observed(trouble=Trouble(kind, "")), memory).action is action


@pytest.mark.parametrize(
    ("reason", "action"),
    [
        (None, Action.DELETE),
        (Trouble(ErrorType.CAPACITY, ""), Action.DELETE),
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
        (130, NEW, Action.STOP),
        (1, TpuHistory(retry=True), Action.RETRY),
        (75, NEW, Action.TRAIN),  # the parent process asks for it
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
def test_after_the_end_nothing_is_left(seen: Observed, memory: TpuHistory, action: Action) -> None:
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
def test_a_finished_run_makes_no_tpu(seen: Observed, memory: TpuHistory, action: Action) -> None:
    finished = dataclasses.replace(seen, run=TpuRun(True, 9, finished=True))
    assert decide(finished, memory).action is action


def test_a_finished_run_that_went_with_its_tpu_is_made_again() -> None:
    assert decide(Observed(), TpuHistory(finished=True)).action is Action.CREATE
    assert decide(Observed(), TpuHistory(finished=True, fetched=True)).action is Action.DONE


@pytest.mark.parametrize(
    ("looks", "minutes"),
    [
        ([(0, TpuNode.ABSENT), (9, TpuNode.CREATING), (20, TpuNode.READY)], 11),
        ([(0, TpuNode.READY), (5, TpuNode.READY)], 65),  # made an hour before the first look
        # nobody knows whether it was READY before
        ([(0, TpuNode.STOPPED), (50, TpuNode.STOPPED)], 60),
        ([(1, TpuNode.READY), (2, TpuNode.STOPPING), (90, TpuNode.STOPPED)], 62),
        ([(0, TpuNode.ABSENT), (1, TpuNode.READY), (7, None), (90, TpuNode.READY)], 90),
        ([(0, TpuNode.READY), (1, TpuNode.ABSENT), (2, TpuNode.CREATING), (4, TpuNode.READY)], 2),
    ],
)
def test_the_hours_of_a_ready_tpu(looks: list[tuple[int, TpuNode | None]], minutes: int) -> None:
    memory = NEW
    for minute, node in looks:
        time = NOON + datetime.timedelta(minutes=minute)
        seen = Observed(node=node or TpuNode.ABSENT, created=NOON - HOUR, time=time)
        if node is None:  # gcloud does not answer
            seen = Observed(time=time, trouble=Trouble(ErrorType.NETWORK, ""))
        memory = remember(memory, seen, HistoryStep(Action.WAIT, ""), succeeded=True)
    assert memory.ready == minutes * 60


WAITING = Observed(queue=Queue.ACTIVE, node=TpuNode.CREATING)
SILENT = dataclasses.replace(READY, hosts=Hosts.UNREACHABLE, run=TpuRun(True, 7))
GONE = dataclasses.replace(READY, hosts=Hosts.VANISHED)


def in_trouble(kind: ErrorType) -> Observed:
    return Observed(trouble=Trouble(kind, ""))


@pytest.mark.parametrize(
    ("memory", "seen", "action", "changes"),
    [
        (NEW, READY, Action.WAIT, {"reached": True, "worked": True}),
        (NEW, READY, Action.FETCH, {"fetched": True, "fetches": 1}),
        (NEW, Observed(), Action.DELETE, {"losses": 1}),
        (TpuHistory(losses=3, setups=2), READY, Action.WAIT, {"losses": 0, "setups": 0}),
        (TpuHistory(retry=True), READY, Action.RETRY, {"retry": False}),
        (NEW, GONE, Action.TRAIN, {"restarts": 1}),
        (TpuHistory(restarts=2), SILENT, Action.WAIT, {"restarts": 0, "checkpoint": 7}),
        (NEW, in_trouble(ErrorType.SETUP), Action.WAIT, {"setups": 1, "attempts": 1}),
        (NEW, in_trouble(ErrorType.UNKNOWN), Action.CREATE, {"unknown": 1, "worked": False}),
        (NEW, WAITING, Action.WAIT, {"not_ready": 1}),
        (NEW, Observed(queue=Queue.ACTIVE), Action.WAIT, {"not_ready": 1}),
        (TpuHistory(not_ready=9), WAITING, Action.DELETE, {"not_ready": 0}),
        (NEW, Observed(queue=Queue.SUSPENDING), Action.WAIT, {"going": 1}),
        (TpuHistory(going=39), Observed(queue=Queue.SUSPENDING), Action.DELETE, {"going": 0}),
        (TpuHistory(silent=20, checkpoint=7), SILENT, Action.WAIT, {"silent": 21}),
        (TpuHistory(silent=20, checkpoint=6), SILENT, Action.WAIT, {"silent": 0}),
        (NEW, dataclasses.replace(READY, hosts=Hosts.MIXED), Action.WAIT, {"mixed": 1}),
    ],
)
def test_what_is_remembered(
    memory: TpuHistory, seen: Observed, action: Action, changes: dict[str, object]
) -> None:
    after = dataclasses.asdict(remember(memory, seen, HistoryStep(action, ""), succeeded=True))
    assert {name: after[name] for name in changes} == changes


def test_what_failed_is_not_remembered_as_done() -> None:
    assert not remember(NEW, READY, HistoryStep(Action.FETCH, ""), succeeded=False).fetched
