"""One training in several processes: the first one orders each step of the trainer.

All that touches the state of training, which is spread over the processes, goes through the
`Trainer`. So process 0 runs the loop of `loop.py` with a trainer that first tells the others what
it does; they do the same, and know neither the schedule nor the disk.
"""

from collections.abc import Callable
from enum import StrEnum
from signal import Signals
from typing import Any

import jax
import numpy as np

from hackmatrix.core.devices import mesh
from hackmatrix.core.errors import UserError
from hackmatrix.core.processes.team import Order, Team, is_end
from hackmatrix.learning.algorithms.config import Course
from hackmatrix.learning.run.stop import StopRequest
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.devices import choose_devices
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.learning.trainer.measures import Measures
from hackmatrix.learning.trainer.trainer import Trainer, TrainState

SAME_SIGNAL = 1.0  # seconds; a signal comes to a process directly and from its parent


class _Order(StrEnum):
    """The name of an order."""

    TRAINER = "trainer"
    CONNECT = "connect"
    INIT = "init"
    RESTORE = "restore"
    RUN = "run"
    SUMS = "sums"
    GATHER = "gather"


class LeadingTrainer(Trainer):
    """A trainer of the first process: the others do what it does."""

    def __init__(self, team: Team, *made_from: Any, **how: Any) -> None:
        """Prepares the programs as `Trainer` does, and connects the devices.

        The others have been told to make the same trainer, by `tell_trainer`.

        Raises:
            LostError: another process does not answer.
            UserError: another process can't make it.
        """
        super().__init__(*made_from, **how)
        self._team = team
        team.check_answers()
        team.order(_Order.CONNECT)
        with team.together():
            _connect(self)

    def init(self, seed: int, update: int = 0) -> TrainState:
        """As in `Trainer`."""
        self._team.order(_Order.INIT, seed, update)
        with self._team.together():
            return jax.block_until_ready(super().init(seed, update))

    def run(self, state: TrainState, num_updates: int) -> TrainState:
        """As in `Trainer`, but waits for the updates."""
        self._team.order(_Order.RUN, num_updates)
        with self._team.together():
            return jax.block_until_ready(super().run(state, num_updates))

    def take_sums(self, state: TrainState) -> tuple[TrainState, Measures]:
        """As in `Trainer`."""
        self._team.order(_Order.SUMS)
        return super().take_sums(state)

    def on_devices(self, state: TrainState) -> TrainState:
        """As in `Trainer`; the others get the state from this process."""
        self._team.order(_Order.RESTORE)
        with self._team.together():
            return super().on_devices(_broadcast_state(self, state))

    def gathered(self, state: TrainState) -> TrainState:
        """As in `Trainer`."""
        self._team.order(_Order.GATHER)
        with self._team.together():
            return jax.block_until_ready(super().gathered(state))


def tell_trainer(team: Team, config: TrainConfig, course: Course, *, detect_anomaly: bool) -> None:
    """Lets the other processes make the trainer that this one makes."""
    team.order(_Order.TRAINER, config.as_dict(), course, detect_anomaly)


def follow(team: Team) -> int:
    """Does what the first process orders, until it orders the end; returns its exit code.

    Raises:
        LostError: other processes are gone.
        UserError: this process can't have the devices or the environment of the first one, which
            gets to know it.
    """
    with StopRequest(lambda: None, lambda: None, SAME_SIGNAL) as stop:
        return _follow_orders(team, lambda: stop.signal)


def _follow_orders(team: Team, signalled: Callable[[], Signals | None]) -> int:
    order = team.next_order(signalled)
    if is_end(order):
        return int(order[1])
    trainer = _trainer(team, order)
    state: Any = None
    while not is_end(order := team.next_order(signalled)):
        with team.together():
            state = jax.block_until_ready(_obey(trainer, state, order))
    return int(order[1])


def _trainer(team: Team, order: Order) -> Trainer:
    _, settings, course, detect_anomaly = order
    try:
        config, _ = resolve({}, None, settings)
        devices, _ = choose_devices(config, team.size)
        trainer = Trainer(
            config.environment.for_training(config.environment.make(config.run.engine)),
            config.learning,
            config.network,
            devices,
            Course(*course),
            agents=config.run.seeds,
            detect_anomaly=detect_anomaly,
        )
    except UserError as error:
        team.answer(str(error))
        raise
    trainer.state_shape()  # traced before the others wait for it
    team.answer(None)
    return trainer


def _obey(trainer: Trainer, state: Any, order: Order) -> Any:
    """The state after an order."""
    name, *values = order
    if name == _Order.CONNECT:
        _connect(trainer)
        return state
    if name == _Order.INIT:  # for a new run it comes from `Trainer.start`, which compiles meanwhile
        seed, update = values
        return trainer.init(seed, update) if update else trainer.start(seed)
    if name == _Order.RESTORE:
        return trainer.on_devices(_broadcast_state(trainer, trainer.state_shape(portable=True)))
    if name == _Order.RUN:
        return trainer.run(state, *values)
    if name == _Order.SUMS:
        return trainer.take_sums(state)[0]
    if name == _Order.GATHER:
        trainer.gathered(state)
        return state
    raise AssertionError(f"{name}: an order of another version of hackmatrix")


def _connect(trainer: Trainer) -> None:
    """Connects the devices of all processes, while all of them are here to do it.

    Between CPUs it fails if one process comes half a minute later than another, and the first
    programs may take longer to compile here than there.
    """
    mesh.from_process_0(np.zeros(1, np.uint32), trainer.mesh)


def _broadcast_state(trainer: Trainer, state: TrainState) -> TrainState:
    """The first process's state, to the bit; the others give shapes or arrays of the same shapes.

    Returns:
        NumPy arrays.
    """
    leaves, structure = jax.tree.flatten(state)
    arrays = [x if isinstance(x, np.ndarray) else np.zeros(x.shape, x.dtype) for x in leaves]
    content = b"".join(array.tobytes() for array in arrays)
    words = np.frombuffer(content + bytes(-len(content) % 4), np.uint32)
    content = mesh.from_process_0(words, trainer.mesh).tobytes()
    starts = np.cumsum([0, *(array.nbytes for array in arrays)])[:-1].tolist()
    shared = [
        np.ndarray(array.shape, array.dtype, content, start)
        for array, start in zip(arrays, starts, strict=True)
    ]
    return jax.tree.unflatten(structure, shared)
