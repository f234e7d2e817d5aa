"""A team of processes that train as one: how they meet, and the orders of the first one.

Process 0 leads: it decides what is done next, and it alone touches the disk. The others do what it
says, in the same order, as all of them have to run the same compiled programs. Orders, answers and
requests are texts in the key-value store of JAX's coordination service, which runs in process 0.
No wait is without a limit of time, and what waits says for whom.
"""

import contextlib
import errno
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
from jax._src import distributed  # of the coordination service, JAX shows the start alone

from hackmatrix.core.errors import UserError

_MEET_SECONDS = 300  # for all processes to come
_FIRST_WORD_SECONDS = 5  # after which it is told that others are waited for
_NEXT_WORD_SECONDS = 30
_POLL_MS = 500  # a follower looks for signals in between
_ANSWER_SECONDS = 120  # for a process to be as far as the first one
_MISSING_SECONDS = 5  # in which processes that have met the same error meet
_LEAVE_SECONDS = 30  # for all to be done

# All have heard an order that old: of so many in a row at least one is done by all at once.
_KEPT = 4

_END = "end"
_STOP = "hackmatrix/stop"

Order = list[Any]  # a name, then numbers, texts, lists or dictionaries of them


class LostError(Exception):
    """Another process of the team is gone, or does not answer; training can't go on here."""


class TeamConfig(NamedTuple):
    """This process's place in its team; None for what JAX is to find out."""

    coordinator: str | None = None  # host:port
    num_processes: int | None = None
    process_id: int | None = None
    heartbeat_timeout: int = 100  # seconds without a heartbeat after which a process is lost


class Team:
    """This process and the others; see `join`."""

    def __init__(self, client: Any, index: int, size: int, beat: Callable[[], None]) -> None:
        self.index = index
        self.size = size
        self._client = client
        self._beat = beat
        self._count = 0  # of the orders so far

    @property
    def leads(self) -> bool:
        """Whether this is the process that decides."""
        return self.index == 0

    def order(self, name: str, *values: Any) -> None:
        """Tells the others what to do next; for the first process alone."""
        self._beat()
        self._client.key_value_set(_key("order", self._count), json.dumps([name, *values]))
        if self._count >= _KEPT:
            self._client.key_value_delete(_key("order", self._count - _KEPT))
        self._count += 1

    def next_order(self, signalled: Callable[[], signal.Signals | None]) -> Order:
        """Waits for the next order.

        Args:
            signalled: the signal that asks this process to stop, if any. The first process gets to
                know it; it is for that one to order the end.

        Raises:
            LostError: the first process can't be reached.
        """
        key = _key("order", self._count)
        while True:
            self._beat()
            if (number := signalled()) is not None:
                self._client.key_value_set(_STOP, str(int(number)), allow_overwrite=True)
            try:
                text = self._client.blocking_key_value_get(key, _POLL_MS)
            except jax.errors.JaxRuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    raise LostError(f"process 0 can't be reached ({_brief(error)})") from error
            else:
                self._count += 1
                order: Order = json.loads(text)
                return order

    def stop_signal(self) -> signal.Signals | None:
        """The signal that has asked another process to stop, if any."""
        try:
            return signal.Signals(int(self._client.key_value_try_get(_STOP)))
        except jax.errors.JaxRuntimeError:
            return None

    def answer(self, trouble: str | None) -> None:
        """Tells the first process that this one has come so far, or why it can't."""
        self._client.key_value_set(_key("answer", self.index), trouble or "")

    def check_answers(self) -> None:
        """Waits for the answer of each of the other processes.

        Raises:
            UserError: one of them is in trouble of the user's making.
            LostError: one of them has not answered.
        """
        for index in range(1, self.size):
            try:
                key = _key("answer", index)
                trouble = self._client.blocking_key_value_get(key, 1000 * _ANSWER_SECONDS)
            except jax.errors.JaxRuntimeError as error:
                raise LostError(
                    f"process {index} has not answered for {_ANSWER_SECONDS} s"
                ) from error
            if trouble:
                raise UserError(f"process {index}: {trouble}")

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Context of what all processes do at once, and can only do at once.

        Raises:
            LostError: it failed, and it did not fail in all processes alike: others are gone.
        """
        try:
            yield
        except LostError:
            raise
        except Exception as error:
            if "RESOURCE_EXHAUSTED" in str(error) or not (gone := self._missing()):
                raise
            raise LostError(f"{gone} lost ({_brief(error)})") from error
        self._beat()

    def end(self, code: int) -> None:
        """Orders the end, with the exit code of all."""
        self.order(_END, code)

    def leave(self) -> None:
        """Waits for the others to be done too, some seconds."""
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            jax.distributed.shutdown()

    def _missing(self) -> str:
        """The processes that do not come to where this one has an error; "" if all do."""
        try:
            self._client.wait_at_barrier(_key("error", self._count), 1000 * _MISSING_SECONDS)
        except jax.errors.JaxRuntimeError as error:
            match = re.search(r"timed out task names:\s*((?:\d+\s+)+)", str(error))
            numbers = match[1].split() if match else []
            return f"process {', '.join(numbers)}" if numbers else "other processes"
        return ""


def is_end(order: Order) -> bool:
    """Whether an order is the last one; its value is the exit code of all."""
    return order[0] == _END


def join(
    config: TeamConfig,
    beat: Callable[[], None],
    tell: Callable[[str], None],
    give_up: Callable[[str], None],
) -> Team | None:
    """Meets the other processes; before anything else is done with JAX.

    Args:
        config: this process's place.
        beat: called whenever this process has got on.
        tell: called in a thread with a line of text while others are waited for.
        give_up: called in that thread if they do not come in time, with a line that says so; it
            ends this process, as nothing else can end JAX's wait.

    Returns:
        The team; None if no place is given, and JAX finds none in the environment.

    Raises:
        UserError: the place is not valid, or the coordinator's port is taken.
    """
    listens_there = config.process_id == 0 and "JAX_COORDINATOR_BIND_ADDRESS" not in os.environ
    if config.coordinator is not None and listens_there:
        _check_port(config.coordinator)
    # Signals are ours: the service would keep SIGTERM from `StopRequest`.
    jax.config.update("jax_enable_preemption_service", False)
    try:
        with _waiting(tell, give_up):
            jax.distributed.initialize(
                config.coordinator,
                config.num_processes,
                config.process_id,
                local_device_ids=[],  # all: on Slurm the default is one
                initialization_timeout=2 * _MEET_SECONDS,  # JAX aborts with a stack of C++
                heartbeat_timeout_seconds=config.heartbeat_timeout,
                shutdown_timeout_seconds=_LEAVE_SECONDS,
            )
    except (ValueError, RuntimeError) as error:
        if config.coordinator is None and "coordinator_address should be defined" in str(error):
            return None
        raise UserError(f"the processes can't meet: {_brief(error)}") from error
    beat()
    met = distributed.global_state
    return Team(met.client, met.process_id, met.num_processes, beat)


def _check_port(coordinator: str) -> None:
    """Raises `UserError` if the coordinator's port is taken here, of which JAX's service dies."""
    port = int(coordinator.rpartition(":")[2])
    has_both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if has_both else socket.AF_INET
    try:
        socket.create_server(("", port), family=family, dualstack_ipv6=has_both).close()
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):  # for JAX to try
            return
        raise UserError(
            f"--coordinator {coordinator}: process 0 can't listen at port {port} "
            f"({error.strerror}): give all processes another one"
        ) from error


@contextlib.contextmanager
def _waiting(tell: Callable[[str], None], give_up: Callable[[str], None]) -> Iterator[None]:
    """Context of a wait for the other processes; a thread says so, and ends it after a while."""
    met = threading.Event()

    def watch() -> None:
        began = time.monotonic()
        pause: float = min(_FIRST_WORD_SECONDS, _MEET_SECONDS)
        while not met.wait(pause):
            found = distributed.global_state
            if found.coordinator_address is None:  # JAX still looks for it
                continue
            who = f"{found.num_processes} processes at {found.coordinator_address}"
            seconds = time.monotonic() - began
            if seconds >= _MEET_SECONDS:
                give_up(f"{who} did not meet within {seconds:.0f} s; is --num-processes right?")
            tell(f"waiting for {who}, {seconds:.0f} s so far")
            pause = min(_NEXT_WORD_SECONDS, max(_MEET_SECONDS - seconds, 0.1))

    threading.Thread(target=watch, name="waiting", daemon=True).start()
    try:
        yield
    finally:
        met.set()


def _key(prefix: str, index: int) -> str:
    return f"hackmatrix/{prefix}/{index}"


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
