"""A team of processes that train as one: how they meet, and the orders of the first one.

Process 0 leads: it decides what is done next, and it alone touches the disk. The others do what it
says, in the same order, as all of them have to run the same compiled programs. An order is such a
program too: a sum over the devices, in which each process has a line of a table. So the first one
learns in turn of signals and of mistakes of the others.
"""

import contextlib
import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from hackmatrix.core.devices import mesh
from hackmatrix.core.errors import UserError

_MEET_SECONDS = 300  # for all processes to come
_FIRST_WORD_SECONDS = 5  # after which it is told that others are waited for
_NEXT_WORD_SECONDS = 30
_POLL_SECONDS = 0.5  # a follower looks for signals in between
_MISSING_SECONDS = 5  # in which processes that have met the same error meet
_LEAVE_SECONDS = 30  # for all to be done

_END = 0  # an order
_COLUMNS = 4  # of the table: a status, and an order with its values or a signal
_TEXT_BYTES = 512

Order = list[int]  # its verb, and its values, each of 32 bits
Integers = np.ndarray[Any, Any]


class LostError(Exception):
    """Another process of the team is gone, or does not answer; training can't go on here."""


class TeamConfig(NamedTuple):
    """This process's place in its team; None for what JAX is to find out."""

    coordinator: str | None = None  # host:port
    num_processes: int | None = None
    process_id: int | None = None
    heartbeat_timeout: int = 100  # seconds without a heartbeat after which a process is lost


class _Status(IntEnum):
    """The condition of a process."""

    FINE = 0
    MISTAKEN = 1  # by an error of the user's making, whose text follows
    FAILED = 2


class Team:
    """This process and the others; see `join`."""

    def __init__(
        self, index: int, size: int, add: Callable[[Integers], Integers], beat: Callable[[], None]
    ) -> None:
        """Stores the arguments.

        Args:
            index: the number of this process.
            size: the number of processes.
            add: adds up arrays of the same shape, one of each process; all call it at once.
            beat: called whenever this process has got on.
        """
        self.index = index
        self.size = size
        self.stop_signal: signal.Signals | None = None  # that has reached another process
        self._add = add
        self._beat = beat
        self._is_over = False

    @property
    def leads(self) -> bool:
        """Whether this is the process that decides."""
        return self.index == 0

    def order(self, verb: int, *values: int) -> None:
        """Gives the others their next order; for the first process alone.

        Raises:
            LostError: another process is gone.
            UserError: another process is in trouble of the user's making.
        """
        self._beat()
        table = self._exchange((verb, *values))
        if number := int(table[1:, 1].max(initial=0)):
            self.stop_signal = signal.Signals(number)

    def next_order(
        self, signalled: Callable[[], signal.Signals | None], mistake: str | None = None
    ) -> Order:
        """Waits for the next order.

        Args:
            signalled: the signal that asks this process to stop, if any. The first process gets to
                know it; it is for that one to order the end.
            mistake: why this process can't do what the last order said, if it is the user's fault.

        Raises:
            LostError: another process is gone.
            UserError: another process is in trouble of the user's making.
        """
        table = self._exchange((signalled() or 0,), mistake, while_waiting=self._beat)
        order: Order = table[0, 1:].tolist()
        return order

    def share(self, content: bytes) -> bytes:
        """The first process's bytes; the others give as many."""
        words = np.frombuffer(content + bytes(-len(content) % 4), np.uint32)
        return self._add(words if self.leads else np.zeros_like(words)).tobytes()[: len(content)]

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
            is_lost = "RESOURCE_EXHAUSTED" not in str(error) and not self._have_all_failed()
            self._is_over = True
            if is_lost:
                raise LostError(f"another process was lost ({_brief(error)})") from error
            raise
        self._beat()

    def end(self, code: int) -> None:
        """Orders the end, with the exit code of all, unless it has come already."""
        if not self._is_over:
            with contextlib.suppress(LostError, UserError):
                self._exchange((_END, code), limit=_LEAVE_SECONDS)

    def leave(self) -> None:
        """Waits for the others to be done too, some seconds."""
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            jax.distributed.shutdown()

    def _have_all_failed(self) -> bool:
        try:
            table = self._exchange((), status=_Status.FAILED, limit=_MISSING_SECONDS)
        except LostError:
            return False
        return bool((table[:, 0] == _Status.FAILED).all())

    def _exchange(
        self,
        line: tuple[int, ...],
        mistake: str | None = None,
        *,
        status: _Status = _Status.FINE,
        limit: float | None = None,
        while_waiting: Callable[[], None] = lambda: None,
    ) -> Integers:
        """The table of the lines of all processes: a status, then what they say.

        Raises:
            LostError: another process is gone, has failed, or does not come within `limit` seconds.
            UserError: another process is mistaken, and this one is not.
        """
        own = np.zeros((self.size, _COLUMNS), np.uint32)
        status = status if mistake is None else _Status.MISTAKEN
        own[self.index, : 1 + len(line)] = status, *line
        try:
            table = _wait(partial(self._add, own), limit, while_waiting)
            mistaken = np.flatnonzero(table[:, 0] == _Status.MISTAKEN)
            if mistaken.size:
                texts = np.zeros((self.size, _TEXT_BYTES), np.uint8)
                content = (mistake or "").encode()[:_TEXT_BYTES]
                texts[self.index, : len(content)] = bytearray(content)
                texts = _wait(partial(self._add, texts), limit, while_waiting)
        except Exception as error:  # of several kinds: JAX has no one for a broken connection
            self._is_over = True
            raise LostError(f"another process was lost ({_brief(error)})") from error
        if mistaken.size:
            self._is_over = True
            if mistake is None:
                text = texts[mistaken[0]].tobytes().rstrip(b"\0").decode(errors="ignore")
                raise UserError(f"process {mistaken[0]}: {text}")
        failed = np.flatnonzero(table[:, 0] == _Status.FAILED)
        if failed.size and status != _Status.FAILED:
            self._is_over = True
            raise LostError(f"process {failed[0]} has failed")
        return table


def _wait(
    call: Callable[[], Integers], limit: float | None, while_waiting: Callable[[], None]
) -> Integers:
    """The result of a call, made in a thread: signals are handled, and there may be a limit.

    Raises:
        LostError: the limit of seconds is over.
    """
    results: list[Integers] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="order", daemon=True)
    thread.start()
    deadline = time.monotonic() + (limit or float("inf"))
    try:
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
            while_waiting()
            if time.monotonic() > deadline:
                raise LostError(f"no answer for {limit:.0f} s")
    except KeyboardInterrupt:
        os._exit(128 + signal.SIGINT)  # at its end Python would wait for the devices
    if errors:
        raise errors[0]
    return results[0]


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
        with _waiting(_name_others(config), tell, give_up):
            jax.distributed.initialize(
                config.coordinator,
                config.num_processes,
                config.process_id,
                local_device_ids=[],  # all: on Slurm the default is one
                initialization_timeout=2 * _MEET_SECONDS,  # JAX aborts with a stack of C++
                heartbeat_timeout_seconds=config.heartbeat_timeout,
                shutdown_timeout_seconds=_LEAVE_SECONDS,
            )
            devices = mesh.mesh_of(jax.devices())
            add = partial(mesh.sum_over_processes, mesh=devices)
            add(np.zeros((jax.process_count(), _COLUMNS), np.uint32))  # connects the devices
    except (ValueError, RuntimeError) as error:
        if config.coordinator is None and "coordinator_address should be defined" in str(error):
            return None
        raise UserError(f"the processes can't meet: {_brief(error)}") from error
    beat()
    return Team(jax.process_index(), jax.process_count(), add, beat)


def _name_others(config: TeamConfig) -> str:
    if config.coordinator is None:
        return "the other processes"
    return f"{config.num_processes} processes at {config.coordinator}"


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
def _waiting(
    others: str, tell: Callable[[str], None], give_up: Callable[[str], None]
) -> Iterator[None]:
    """Context of a wait for the other processes; a thread says so, and ends it after a while."""
    met = threading.Event()

    def watch() -> None:
        began = time.monotonic()
        pause: float = min(_FIRST_WORD_SECONDS, _MEET_SECONDS)
        while not met.wait(pause):
            seconds = time.monotonic() - began
            if seconds >= _MEET_SECONDS:
                give_up(f"{others} did not meet within {seconds:.0f} s; is --num-processes right?")
            tell(f"waiting for {others}, {seconds:.0f} s so far")
            pause = min(_NEXT_WORD_SECONDS, max(_MEET_SECONDS - seconds, 0.1))

    threading.Thread(target=watch, name="waiting", daemon=True).start()
    try:
        yield
    finally:
        met.set()


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
