"""Orders, signals and mistakes of a team, with threads in place of processes."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from hackmatrix.core.devices import team as teams
from hackmatrix.core.devices.team import LostError, Team, is_end
from hackmatrix.core.errors import UserError


class Sums:
    """Adds up the arrays of all processes, as devices do."""

    def __init__(self, size: int) -> None:
        self.arrays: list[Any] = []
        self.barrier = threading.Barrier(size)
        self.lock = threading.Lock()

    def add(self, array: Any) -> Any:
        with self.lock:
            self.arrays.append(array)
        try:
            self.barrier.wait()
        except threading.BrokenBarrierError:
            raise ValueError("Connection closed by peer") from None
        total = np.sum(self.arrays[-self.barrier.parties :], axis=0, dtype=array.dtype)
        with suppress(threading.BrokenBarrierError):  # all have added up
            self.barrier.wait()
        return total


def run(*processes: Callable[[Team], Any]) -> list[Any]:
    """What each process returns or raises; with it the connection to the others is closed."""
    sums = Sums(len(processes))

    def one(index: int) -> Any:
        try:
            return processes[index](Team(index, len(processes), sums.add, lambda: None))
        except Exception as error:
            sums.barrier.abort()
            return error

    with ThreadPoolExecutor(len(processes)) as threads:
        return list(threads.map(one, range(len(processes))))


def no_signal() -> None:
    return None


def follow_once(team: Team) -> Any:
    return team.next_order(no_signal)


def follow(team: Team) -> list[list[int]]:
    orders = [team.next_order(no_signal)]
    while not is_end(orders[-1]):
        orders.append(team.next_order(no_signal))
    return orders


def test_orders_are_heard_in_their_order_until_the_end() -> None:
    def lead(team: Team) -> bool:
        team.order(3, 2**32 - 1)
        team.order(4)
        team.end(143)
        return team.leads

    leads, *heard = run(lead, follow, follow)
    assert leads
    assert heard == [[[3, 2**32 - 1, 0], [4, 0, 0], [0, 143, 0]]] * 2


def test_bytes_of_the_first_process_are_shared() -> None:
    content = bytes(range(7))
    shared = run(lambda team: team.share(content), lambda team: team.share(bytes(7)))
    assert shared == [content, content]


def test_the_leader_gets_to_know_of_a_signal() -> None:
    def lead(team: Team) -> Any:
        team.order(1)
        return team.stop_signal

    def stopped(team: Team) -> Any:
        return team.next_order(lambda: signal.SIGTERM)

    assert run(lead, follow_once, stopped)[0] == signal.SIGTERM
    assert run(lead, follow_once)[0] is None


def test_a_mistake_of_one_process_ends_all() -> None:
    def lead(team: Team) -> None:
        try:
            team.order(1)
        finally:
            team.end(2)  # which waits for nobody

    def mistaken(team: Team) -> Any:
        return team.next_order(no_signal, "no such device: é")

    errors = run(lead, follow_once, mistaken)[:2]
    assert [type(error) for error in errors] == [UserError] * 2
    assert {str(error) for error in errors} == {"process 2: no such device: é"}


def test_an_error_that_all_have_is_their_own() -> None:
    def fail(team: Team) -> None:
        with team.together():
            raise ValueError("a bug")

    assert [str(error) for error in run(fail, fail)] == ["a bug", "a bug"]


def test_an_error_that_not_all_have_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(team: Team) -> None:
        with team.together():
            raise ValueError("closed")

    failed, other = run(fail, follow)
    assert "another process was lost (closed" in str(failed)
    assert "process 0 has failed" in str(other)
    assert isinstance(failed, LostError)
    assert isinstance(other, LostError)
    monkeypatch.setattr(teams, "_MISSING_SECONDS", 0.1)
    monkeypatch.setattr(teams, "_POLL_SECONDS", 0.01)
    with pytest.raises(LostError, match=r"lost \(closed"), Team(0, 2, block, print).together():
        raise ValueError("closed")


def block(_: Any) -> Any:
    threading.Event().wait()


def test_a_device_that_is_full_is_the_users_to_mend() -> None:
    with pytest.raises(ValueError, match="9 GiB"), Team(0, 2, block, print).together():
        raise ValueError("RESOURCE_EXHAUSTED: 9 GiB")


def test_who_is_gone_is_noticed() -> None:
    def leave(_: Team) -> None:
        raise ValueError("gone")

    lost = run(leave, follow)[1]
    assert isinstance(lost, LostError)
    assert "another process was lost (Connection closed by peer)" in str(lost)
