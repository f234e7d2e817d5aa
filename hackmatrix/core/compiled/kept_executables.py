"""Keeps finished executables on disk, so that a new process need not trace their programs.

JAX's compilation cache finds an executable by its program, which has to be traced and lowered
first. Here it is found by a name that says all that the program is made from, so that it is loaded
while the process does other work. A file under the name says which program it was, and a file under
the program has the executable: where the source of the package has changed, but not the program,
only the first is written anew. Files are used under the conditions of `kept_programs.py`, and only
on processors like the one that compiled them.

Pickle reads such a file: it holds machine code, so whoever could write one that is used could do
anything. Only files that this user's own processes have signed are read (`signature.py`).
"""

import os
import pickle
import platform
import threading
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path

import jax
from jax import monitoring
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jax.stages import Compiled, Lowered

from hackmatrix.core.compiled import kept_programs

_LIBRARIES = ("flax", "optax")  # besides those of `kept_programs.py`
_CPU_INFO = Path("/proc/cpuinfo")
_OF_THE_PROCESSOR = {"vendor_id", "cpu family", "model", "model name", "flags", "Features"}
_LAPACK = "@lapack_"  # its functions are only looked up when a program with them is lowered
_FOUND_BY_JAX = "/jax/compilation_cache/cache_hits"


class KeptExecutables:
    """The executables of some programs on one device, loaded by threads from the beginning."""

    def __init__(self, name: str, programs: Sequence[str], device: jax.Device) -> None:
        """Begins to load those that have been kept.

        Args:
            name: says all that the programs are made from, but for the source of the package.
            programs: what to call them.
            device: where they run.
        """
        self._device = device
        self._names = {each: _key_of_name(f"{each} of {name}", device) for each in programs}
        threads = ThreadPoolExecutor(len(programs))
        self._loading = {
            each: threads.submit(_load, key, device)
            for each, file in self._names.items()
            if file is not None and (key := kept_programs.read(file, bytes.decode)) is not None
        }
        threads.shutdown(wait=False)
        self._executables: dict[str, Compiled] = {}

    def get(self, program: str) -> Compiled | None:
        """The executable, waiting until it is loaded; None if there is none yet."""
        if program in self._loading and program not in self._executables:
            return self._loading[program].result()
        return self._executables.get(program)

    def is_loading(self, program: str) -> bool:
        """Whether there is an executable of that name, which may turn out to be damaged."""
        return program in self._loading

    def make(self, program: str, lowered: Lowered) -> None:
        """Compiles a program that has not been kept, and keeps it for other processes."""
        text = lowered.as_text()
        if (name := self._names[program]) is None or _LAPACK in text:
            executable = lowered.compile()
        else:
            # A file holds the classes of arguments and results too, of which no program tells.
            key = _key_of_program(f"{text}{lowered.in_tree}{lowered.out_tree}", self._device)
            executable = _load(key, self._device) or _compile_and_keep(key, lowered)
            kept_programs.write(name, key.encode())
        self._executables[program] = executable


def _key_of_name(name: str, device: jax.Device) -> str | None:
    if device.platform != "cpu" or not _processor():
        return None
    versions = [version(library) for library in _LIBRARIES]
    return kept_programs.key_of(name, versions, *_machine(device))


def _key_of_program(text: str, device: jax.Device) -> str:
    return kept_programs.key_of_text(text, *_machine(device))


def _machine(device: jax.Device) -> tuple[object, ...]:
    """All that an executable depends on besides its program and JAX's settings."""
    flags = os.environ.get("XLA_FLAGS")
    return str(device), device.client.platform_version, _processor(), flags


@cache
def _processor() -> tuple[str, ...]:
    """The processor's features that compilers may use; empty if the system does not tell."""
    try:
        lines = _CPU_INFO.read_text().split("\n\n")[0].splitlines()
    except OSError:
        return ()
    features = [line for line in lines if line.partition(":")[0].strip() in _OF_THE_PROCESSOR]
    return (platform.machine(), *features)


def _load(key: str, device: jax.Device) -> Compiled | None:
    def understood(content: bytes) -> Compiled:
        executable, inputs, results = pickle.loads(zlib.decompress(content))
        return deserialize_and_load(executable, inputs, results, device.client, [device])

    return kept_programs.read(key, understood)


def _compile_and_keep(key: str, lowered: Lowered) -> Compiled:
    events = []
    thread = threading.get_ident()

    def listen(event: str, **_: object) -> None:
        if event == _FOUND_BY_JAX and threading.get_ident() == thread:
            events.append(event)

    monitoring.register_event_listener(listen)
    try:
        executable = lowered.compile()
    finally:
        monitoring.unregister_event_listener(listen)
    # jaxlib 0.10 writes files that lack functions of an executable that it has read itself, and
    # can't write one that has run.
    if not events:
        try:
            content = pickle.dumps(serialize(executable))
        except Exception:  # then the next process compiles it too
            return executable
        kept_programs.write(key, zlib.compress(content, 1))
    return executable
