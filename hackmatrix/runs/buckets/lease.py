"""The lease of a run in a bucket: one trainer at a time may write it.

It is an object that its holder writes anew every `RENEW_SECONDS`, each time only if it is still of
the generation that the holder wrote last. One that was not renewed for `SECONDS` may be taken over.
Ages are told by the clock of the server and by this process's monotonic clock, never by comparing
the clocks of two machines.
"""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hackmatrix.core.errors import UserError
from hackmatrix.runs.bucket import Bucket, BucketError, Changed, Missing, Unreachable

NAME = "lease.json"
SECONDS = 60.0
RENEW_SECONDS = 15.0
_LOOK_SECONDS = 2.0  # between two looks at the lease of another
_PATIENCE = 8.0  # seconds in which one renewal is tried
_PATIENCE_AT_END = 3.0

Say = Callable[[str], None]


class LeaseLost(BucketError):
    """Another process has taken the lease over: nothing may be written any more."""


class Lease:
    """A lease that this process holds; a thread renews it until `release`."""

    def __init__(self, bucket: Bucket, token: str, generation: int, sent: float) -> None:
        self._bucket = bucket
        self._token = token
        self._generation = generation
        self._good_until = sent + SECONDS
        self._lost: LeaseLost | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_on, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises an error unless this process holds the lease now.

        Raises:
            LeaseLost: another process has it.
            Unreachable: it could not be renewed in time; it may be again.
        """
        if self._lost is not None:
            raise self._lost
        if time.monotonic() >= self._good_until:
            address = self._bucket.address
            raise Unreachable(f"{address}: the lease could not be renewed for {SECONDS:.0f} s")

    def renew(self) -> None:
        """Renews the lease now.

        Raises:
            LeaseLost: another process has it.
            BucketError: the bucket does not take it.
        """
        with self._lock:
            if self._lost is not None:
                raise self._lost
            sent = time.monotonic()
            try:
                written = self._bucket.write(NAME, _content(self._token), self._generation)
                self._generation = written.generation
            except Changed:
                self._generation = self._generation_after_change()
            self._good_until = sent + SECONDS

    def release(self) -> None:
        """Ends the renewals and deletes the lease, if this process still has it."""
        self._ended.set()
        with self._lock:
            if self._lost is not None:
                return
            self._lost = LeaseLost(f"{self._bucket.address}: the lease was released")
            self._bucket.patience = _PATIENCE_AT_END
            with contextlib.suppress(BucketError):  # else it expires
                self._bucket.delete(NAME, self._generation)

    def _generation_after_change(self) -> int:
        """The generation of the lease, if it is this process's own write whose answer was lost."""
        record = _read(self._bucket)
        if record is None and time.monotonic() >= self._good_until:
            self._lost = LeaseLost(
                f"{self._bucket.address}: this process did not renew its lease for {SECONDS:.0f} "
                "s, and it is gone: another may have trained the run meanwhile"
            )
            raise self._lost
        if record is None:  # somebody deleted it
            return self._bucket.write(NAME, _content(self._token), 0).generation
        holder, generation, _ = record
        if holder.get("token") == self._token:
            return generation
        self._lost = LeaseLost(
            f"{self._bucket.address}: {_describe_holder(holder)} has taken the run over, as this "
            f"process did not renew its lease for {SECONDS:.0f} s"
        )
        raise self._lost

    def _renew_on(self) -> None:
        pause = RENEW_SECONDS
        while not self._ended.wait(pause):
            try:
                self.renew()
                pause = RENEW_SECONDS
            except LeaseLost:
                return
            except BucketError:  # `check` tells when it has lasted too long
                pause = _LOOK_SECONDS


def take_lease(bucket: Bucket, say: Say) -> Lease:
    """Takes the lease of the run in a folder of a bucket, which this also proves to be writable.

    If another has it, this waits until it is renewed, which ends in an error, or expires.

    Args:
        bucket: the run's folder; used by the lease alone from then on.
        say: called with a line if it has to wait.

    Raises:
        UserError: another process is training the run.
        BucketError: the bucket can't be written to.
    """
    token = secrets.token_hex(8)
    now, asked = _server_time(bucket, token), time.monotonic()
    while True:
        bucket_age = timedelta(seconds=time.monotonic() - asked)
        generation = _free(bucket, now + bucket_age, say)
        sent = time.monotonic()
        try:
            generation = bucket.write(NAME, _content(token), generation).generation
        except Changed:  # another was faster, or the answer to a first try was lost
            found = _read(bucket)
            if found is None or found[0].get("token") != token:
                continue
            generation = found[1]
        bucket.patience = _PATIENCE
        return Lease(bucket, token, generation, sent)


def _free(bucket: Bucket, now: datetime, say: Say) -> int:
    """Waits until nobody holds the lease; the generation that a new one replaces, 0 for none."""
    record = _read(bucket)
    if record is None:
        return 0
    holder, generation, updated = record
    left = (updated + timedelta(seconds=SECONDS) - now).total_seconds()
    if left <= 0 or _is_dead(holder):
        return generation
    until = (updated + timedelta(seconds=SECONDS)).strftime("%H:%M:%S UTC")
    held = f"{bucket.address} is leased to {_describe_holder(holder)} until {until}"
    say(f"{held}; waiting at most {left:.0f} s to see whether it goes on")
    deadline = time.monotonic() + left
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(min(_LOOK_SECONDS, left))
        there = bucket.find(NAME)
        if there is None:
            return 0
        if there.generation != generation:
            record = _read(bucket)
            holder = record[0] if record else holder
            raise UserError(
                f"{bucket.address} is being trained by {_describe_holder(holder)}, which renews "
                "its lease: stop that one first, or train under another --run-name"
            )
    return generation


def _read(bucket: Bucket) -> tuple[dict[str, Any], int, datetime] | None:
    """The lease's content, its generation and when it was written; None if there is none."""
    while (there := bucket.find(NAME)) is not None:
        try:
            content = bucket.read(NAME)
        except Missing:
            return None
        if (again := bucket.find(NAME)) is not None and again.generation == there.generation:
            try:
                found = json.loads(content)
            except ValueError:
                found = {}
            return (found if isinstance(found, dict) else {}), there.generation, there.updated
    return None


def _server_time(bucket: Bucket, token: str) -> datetime:
    name = f".probe-{token}"
    now = bucket.write(name, b"").updated
    bucket.delete(name)
    return now


def _content(token: str) -> bytes:
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "machine": _machine()}
    return json.dumps({**holder, "token": token, "time": now}).encode()


def _describe_holder(holder: dict[str, Any]) -> str:
    return f"{holder.get('host', 'an unknown host')!s:.80} (process {holder.get('pid')!s:.20})"


def _is_dead(holder: dict[str, Any]) -> bool:
    """Whether the holder was a process of this machine that is gone."""
    machine, pid = _machine(), holder.get("pid")
    if machine is None or holder.get("machine") != machine or not isinstance(pid, int):
        return False
    return not Path(f"/proc/{pid}").exists()


def _machine() -> str | None:
    """An id that processes share if they see each other's numbers; None if unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None
