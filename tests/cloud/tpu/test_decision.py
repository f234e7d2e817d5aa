"""The next step, as a table: every state of the API, of hosts, of errors."""

import dataclasses
import datetime

import pytest

from hackmatrix.cloud.tpu import decision
from hackmatrix.cloud.tpu.decision import backoff, decide
from hackmatrix.cloud.tpu.gcloud_errors import Kind, Trouble
from hackmatrix.cloud.tpu.history import Action, Memory, Step, remember
from hackmatrix.cloud.tpu.observed import Hosts, Node, Observed, Queue, Run

READY = Observed(queue=Queue.ACTIVE, node=Node.READY, hosts=Hosts.TRAINING)
NEW = Memory()
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
    Node.ABSENT: Action.WAIT,
    Node.STATE_UNSPECIFIED: Action.WAIT,
    Node.CREATING: Action.WAIT,
    Node.READY: Action.SET_UP,
    Node.RESTARTING: Action.WAIT,
    Node.REIMAGING: Action.WAIT,
    Node.DELETING: Action.WAIT,
    Node.REPAIRING: Action.WAIT,
    Node.STOPPED: Action.START,
    Node.STOPPING: Action.WAIT,
    Node.STARTING: Action.WAIT,
    Node.PREEMPTED: Action.DELETE,
    Node.TERMINATED: Action.DELETE,
    Node.HIDING: Action.WAIT,
    Node.HIDDEN: Action.WAIT,
    Node.UNHIDING: Action.WAIT,
    Node.UNKNOWN: Action.DELETE,
}
# What a TPU that does not get ready comes to, after many looks.
LOST = {
    Node.ABSENT,
    Node.STATE_UNSPECIFIED,
    Node.CREATING,
    Node.RESTARTING,
    Node.REIMAGING,
    Node.REPAIRING,
    Node.STARTING,
    Node.HIDING,
    Node.HIDDEN,
    Node.UNHIDING,
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
    Kind.NO_GCLOUD: Action.STOP,
    Kind.AUTH: Action.STOP,
    Kind.SSH_KEY: Action.STOP,
    Kind.SSH: Action.WAIT,
    Kind.EXISTS: Action.CREATE,  # nothing was seen: as if it had not happened
    Kind.NOT_FOUND: Action.CREATE,
    Kind.NO_BUCKET: Action.STOP,
    Kind.NO_QUOTA: Action.STOP,
    Kind.QUOTA: Action.WAIT,
    Kind.CAPACITY: Action.WAIT,
    Kind.PERMISSION: Action.STOP,
    Kind.INVALID: Action.STOP,
    Kind.NETWORK: Action.WAIT,
    Kind.SETUP: Action.WAIT,
    Kind.UNKNOWN: Action.WAIT,
}


def ended(code: int) -> Observed:
    words, run = ("ValueError: no",), Run(exists=True, checkpoint=4)
    return dataclasses.replace(READY, hosts=Hosts.ENDED, code=code, words=words, run=run)


def test_the_tables_are_complete() -> None:
    assert set(OF_QUEUE) == set(Queue)
    assert set(OF_NODE) == set(Node)
    assert set(OF_HOSTS) == set(Hosts)
    assert set(OF_TROUBLE) == set(Kind)


@pytest.mark.parametrize("queue", Queue)
def test_every_state_of_the_request(queue: Queue) -> None:
    assert decide(Observed(queue=queue), NEW).action is OF_QUEUE[queue]


@pytest.mark.parametrize("node", Node)
def test_every_state_of_the_tpu(node: Node) -> None:
    seen = Observed(queue=Queue.ACTIVE, node=node, hosts=Hosts.BARE)
    assert decide(seen, NEW).action is OF_NODE[node]
    if node is not Node.ABSENT:  # made without a request
        direct = dataclasses.replace(seen, queue=Queue.ABSENT)
        assert decide(direct, NEW).action is OF_NODE[node]


@pytest.mark.parametrize("node", Node)
def test_a_tpu_that_does_not_get_ready_is_lost(node: Node) -> None:
    seen = Observed(queue=Queue.ACTIVE, node=node, hosts=Hosts.BARE)
    action = decide(seen, Memory(not_ready=decision.NOT_READY)).action
    assert action is (Action.DELETE if node in LOST else OF_NODE[node])


@pytest.mark.parametrize("hosts", Hosts)
def test_every_state_of_the_hosts(hosts: Hosts) -> None:
    assert decide(dataclasses.replace(READY, hosts=hosts), NEW).action is OF_HOSTS[hosts]


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_error(kind: Kind) -> None:
    step = decide(Observed(trouble=Trouble(kind, "said gcloud")), NEW)
    assert step.action is OF_TROUBLE[kind]
    if step.action is not Action.CREATE:
        assert "said gcloud" in step.words
    assert (step.code == 1) == (step.action is Action.STOP)


@pytest.mark.parametrize(
    ("kind", "memory", "action"),
    [
        (Kind.AUTH, Memory(worked=True), Action.WAIT),  # the user may be asleep
        (Kind.SETUP, Memory(setups=decision.SETUPS - 1), Action.STOP),
        (Kind.UNKNOWN, Memory(unknown=decision.UNKNOWN_ERRORS - 1), Action.STOP),
        (Kind.QUOTA, Memory(attempts=10_000), Action.WAIT),  # for ever
        (Kind.CAPACITY, Memory(attempts=10_000), Action.WAIT),
        (Kind.NETWORK, Memory(attempts=10_000), Action.WAIT),
        (Kind.SSH, Memory(attempts=10_000), Action.WAIT),
    ],
)
def test_errors_that_come_again(kind: Kind, memory: Memory, action: Action) -> None:
    assert decide(Observed(trouble=Trouble(kind, "")), memory).action is action


@pytest.mark.parametrize(
    ("reason", "action"),
    [
        (None, Action.DELETE),
        (Trouble(Kind.CAPACITY, ""), Action.DELETE),
        (Trouble(Kind.QUOTA, ""), Action.DELETE),
        (Trouble(Kind.NO_QUOTA, ""), Action.STOP),
        (Trouble(Kind.PERMISSION, ""), Action.STOP),
        (Trouble(Kind.INVALID, ""), Action.STOP),
    ],
)
def test_a_request_that_failed(reason: Trouble | None, action: Action) -> None:
    assert decide(Observed(queue=Queue.FAILED, queue_trouble=reason), NEW).action is action


@pytest.mark.parametrize(
    ("code", "memory", "action"),
    [
        (0, NEW, Action.FETCH),
        (0, Memory(fetched=True), Action.DELETE),
        (0, Memory(fetched=True, keep=True), Action.DONE),
        (1, NEW, Action.STOP),
        (2, NEW, Action.STOP),
        (130, NEW, Action.STOP),
        (1, Memory(retry=True), Action.RETRY),
        (75, NEW, Action.TRAIN),  # the parent process asks for it
        (129, NEW, Action.TRAIN),
        (134, NEW, Action.TRAIN),
        (137, NEW, Action.TRAIN),
        (143, NEW, Action.TRAIN),
        (137, Memory(restarts=decision.RESTARTS), Action.STOP),
    ],
)
def test_training_that_ended(code: int, memory: Memory, action: Action) -> None:
    step = decide(ended(code), memory)
    assert step.action is action
    if action is Action.STOP:
        assert step.code == 1
        assert "  ValueError: no" in step.last_words


@pytest.mark.parametrize(
    ("memory", "run", "action"),
    [
        (Memory(silent=decision.SSH_NEVER_WORKED - 1), Run(), Action.STOP),
        (Memory(silent=decision.SSH_NEVER_WORKED - 1, reached=True), Run(), Action.WAIT),
        (Memory(silent=decision.SSH_NEVER_WORKED - 1), Run(True, 7), Action.WAIT),
        (Memory(silent=decision.SILENT - 1, reached=True), Run(), Action.DELETE),
        (Memory(silent=decision.SILENT - 1), Run(True, 7), Action.DELETE),
    ],
)
def test_hosts_that_do_not_answer(memory: Memory, run: Run, action: Action) -> None:
    seen = dataclasses.replace(READY, hosts=Hosts.UNREACHABLE, run=run)
    assert decide(seen, memory).action is action


def test_new_checkpoints_show_that_silent_hosts_live() -> None:
    seen = dataclasses.replace(READY, hosts=Hosts.UNREACHABLE, run=Run(True, 7))
    step = Step(Action.WAIT, "")
    memory = remember(Memory(silent=20, checkpoint=6), seen, step, succeeded=True)
    assert memory.silent == 0
    assert remember(memory, seen, step, succeeded=True).silent == 1


def test_hosts_that_stay_mixed_train_again() -> None:
    seen = dataclasses.replace(READY, hosts=Hosts.MIXED)
    assert decide(seen, Memory(mixed=decision.MIXED - 1)).action is Action.TRAIN


@pytest.mark.parametrize(
    ("seen", "memory", "action"),
    [
        (READY, NEW, Action.DELETE),
        (dataclasses.replace(READY, run=Run(True, 4)), NEW, Action.FETCH),
        (dataclasses.replace(READY, run=Run(True, 4)), Memory(fetched=True), Action.DELETE),
        (dataclasses.replace(READY, run=Run(True, 4)), Memory(fetches=3), Action.DELETE),
        (Observed(queue=Queue.DELETING), NEW, Action.WAIT),
        (Observed(queue=Queue.WAITING_FOR_RESOURCES), NEW, Action.DELETE),
        (Observed(), NEW, Action.STOP),
    ],
)
def test_after_the_end_date_nothing_is_left(seen: Observed, memory: Memory, action: Action) -> None:
    assert decide(dataclasses.replace(seen, overdue=True), memory).action is action


@pytest.mark.parametrize(
    ("seen", "memory", "action"),
    [
        (Observed(), NEW, Action.FETCH),  # it finished while nobody looked, and was preempted
        (Observed(), Memory(fetched=True), Action.DONE),
        (Observed(queue=Queue.SUSPENDED), Memory(fetched=True), Action.DELETE),
        (Observed(queue=Queue.DELETING), Memory(fetched=True), Action.WAIT),
        (READY, Memory(fetched=True), Action.DELETE),
    ],
)
def test_a_finished_run_makes_no_new_tpu(seen: Observed, memory: Memory, action: Action) -> None:
    finished = dataclasses.replace(seen, run=Run(True, 9, finished=True))
    assert decide(finished, memory).action is action


def test_a_finished_run_that_went_with_its_tpu_is_made_again() -> None:
    assert decide(Observed(), Memory(finished=True)).action is Action.CREATE
    assert decide(Observed(), Memory(finished=True, fetched=True)).action is Action.DONE


def test_a_new_tpu_resumes_from_the_newest_checkpoint() -> None:
    assert decide(Observed(run=Run(True, 40)), NEW).words.endswith(", from 40")


def test_waiting_grows_to_five_minutes_and_no_further() -> None:
    assert [backoff(n) for n in range(6)] == [15, 30, 60, 120, 240, 300]
    assert backoff(10**6) == 300


@pytest.mark.parametrize(
    ("looks", "minutes"),
    [
        ([(0, Node.ABSENT), (9, Node.CREATING), (20, Node.READY), (30, Node.READY)], 21),
        ([(0, Node.READY), (5, Node.READY)], 65),  # made an hour before the first look
        ([(0, Node.STOPPED), (50, Node.STOPPED)], 60),  # nobody knows whether it was READY before
        ([(0, Node.ABSENT), (1, Node.READY), (2, Node.STOPPING), (90, Node.STOPPED)], 2),
        ([(0, Node.ABSENT), (1, Node.READY), (7, None), (90, Node.READY)], 90),
        ([(0, Node.READY), (1, Node.ABSENT), (2, Node.CREATING), (4, Node.READY)], 2),  # another
    ],
)
def test_the_time_for_which_a_tpu_was_ready(
    looks: list[tuple[int, Node | None]], minutes: int
) -> None:
    memory = NEW
    for minute, node in looks:
        time = NOON + datetime.timedelta(minutes=minute)
        seen = Observed(node=node or Node.ABSENT, created=NOON - HOUR, time=time)
        if node is None:  # gcloud does not answer
            seen = Observed(time=time, trouble=Trouble(Kind.NETWORK, ""))
        memory = remember(memory, seen, Step(Action.WAIT, ""), succeeded=True)
    assert memory.ready == minutes * 60


def test_what_is_remembered() -> None:
    def after(memory: Memory, seen: Observed, action: Action, *, succeeded: bool = True) -> Memory:
        return remember(memory, seen, Step(action, ""), succeeded)

    assert after(NEW, READY, Action.WAIT).reached
    assert after(NEW, READY, Action.WAIT).worked
    assert after(NEW, READY, Action.FETCH).fetched
    assert not after(NEW, READY, Action.FETCH, succeeded=False).fetched
    assert after(NEW, Observed(), Action.DELETE).losses == 1
    assert after(Memory(losses=3), READY, Action.WAIT).losses == 0
    assert not after(Memory(retry=True), READY, Action.RETRY).retry
    gone = dataclasses.replace(READY, hosts=Hosts.VANISHED)
    assert after(NEW, gone, Action.TRAIN).restarts == 1
    assert (
        after(Memory(restarts=2), dataclasses.replace(gone, run=Run(True, 1)), Action.WAIT).restarts
        == 0
    )
    failed = Observed(trouble=Trouble(Kind.SETUP, ""))
    assert (after(NEW, failed, Action.WAIT).setups, after(NEW, failed, Action.WAIT).attempts) == (
        1,
        1,
    )
