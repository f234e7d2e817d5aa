"""Compiled programs that the trainings of a process share, and take turns to run."""

import itertools
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from hackmatrix.learning.trainer.trainer import Trainer


class SharedPrograms:
    """Trainers by all that their programs depend on, and whose turn it is on the devices.

    Trainings in threads of one process share it (`hackmatrix tune --together`); one by itself has
    its own.
    """

    def __init__(self) -> None:
        """No program yet."""
        self.trainers: dict[Hashable, Trainer] = {}
        self._tickets = itertools.count()
        self._serving = 0
        self._next = threading.Condition()

    def get(self, key: Hashable, make: Callable[[], Trainer]) -> Trainer:
        """The trainer with these programs; made if there is none. To call in one's turn."""
        if key not in self.trainers:
            self.trainers[key] = make()
        return self.trainers[key]

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Waits until all who came before have compiled or computed.

        Two programs with collectives, at the same time on the same CPU devices, may block each
        other forever; and a lock goes to whoever is quickest, often the one that has just had it.
        """
        with self._next:
            ticket = next(self._tickets)
            self._next.wait_for(lambda: self._serving == ticket)
        try:
            yield
        finally:
            with self._next:
                self._serving += 1
                self._next.notify_all()
