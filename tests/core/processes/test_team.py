"""Orders, answers and requests of a team, with a key-value store in place of JAX's."""

import signal
from typing import Any

import jax
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.core.processes.team import LostError, Team, is_end


class Store:
    """The part of JAX's client that a team uses; nothing waits."""

    def __init__(self, missing: str | None = None) -> None:
        self.texts: dict[str, str] = {}
        self.missing = missing  # what the service says of a barrier

    def key_value_set(self, key: str, text: str, *, allow_overwrite: bool = False) -> None:
        assert allow_overwrite or key not in self.texts
        self.texts[key] = text

    def key_value_delete(self, key: str) -> None:
        del self.texts[key]

    def key_value_try_get(self, key: str) -> str:
        if key not in self.texts:
            raise jax.errors.JaxRuntimeError("NOT_FOUND")
        return self.texts[key]

    def blocking_key_value_get(self, key: str, milliseconds: int) -> str:
        if key not in self.texts:
            raise jax.errors.JaxRuntimeError("DEADLINE_EXCEEDED")
        return self.texts[key]

    def wait_at_barrier(self, key: str, milliseconds: int) -> None:
        if self.missing is not None:
            raise jax.errors.JaxRuntimeError(self.missing)


def team(store: Any, index: int, size: int = 3) -> Team:
    return Team(store, index, size, lambda: None)


def no_signal() -> None:
    return None


def test_orders_are_heard_in_their_order_until_the_end() -> None:
    store = Store()
    leader, follower = team(store, 0), team(store, 1)
    leader.order("run", 5, {"a": [1.5, None]})
    leader.end(143)
    heard = [follower.next_order(no_signal) for _ in range(2)]
    assert heard == [["run", 5, {"a": [1.5, None]}], ["end", 143]]
    assert [is_end(order) for order in heard] == [False, True]
    assert follower.index == 1
    assert leader.leads > follower.leads


def test_orders_that_all_have_heard_are_forgotten() -> None:
    store = Store()
    leader = team(store, 0)
    for number in range(100):
        leader.order("run", number)
    assert len(store.texts) < 5


def test_the_leader_gets_to_know_of_a_signal() -> None:
    store = Store()
    leader, follower = team(store, 0), team(store, 2)
    assert leader.stop_signal() is None
    leader.order("run", 1)
    follower.next_order(lambda: signal.SIGTERM)
    leader.order("run", 1)
    follower.next_order(lambda: signal.SIGTERM)
    assert leader.stop_signal() == signal.SIGTERM


def test_trouble_of_another_process_is_the_users_and_silence_is_a_loss() -> None:
    store = Store()
    leader = team(store, 0)
    team(store, 1).answer(None)
    with pytest.raises(LostError, match="process 2 has not answered"):
        leader.check_answers()
    team(store, 2).answer("no such device")
    with pytest.raises(UserError, match="process 2: no such device"):
        leader.check_answers()


@pytest.mark.parametrize(
    ("missing", "text", "error", "told"),
    [
        (None, "a bug", ValueError, "a bug"),  # all processes have it
        ("timed out task names:\n1\n3\n\nRPC", "closed", LostError, r"process 1, 3 lost \(closed"),
        ("the service is gone", "closed", LostError, "other processes lost"),
        ("timed out task names:\n1\n", "RESOURCE_EXHAUSTED: 9 GiB", ValueError, "9 GiB"),
    ],
)
def test_an_error_that_not_all_have_is_a_loss_and_says_of_whom(
    missing: str | None, text: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told), team(Store(missing), 0).together():
        raise ValueError(text)
