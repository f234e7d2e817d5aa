"""One training in several processes: the first one orders each step of the trainer.

All that touches the state of training, which is spread over the processes, goes through the
`Trainer`. So process 0 runs the loop of `loop.py` with a trainer that first tells the others what
it does; they do the same, and know neither the schedule nor the disk.
"""

import json
from collections.abc import Callable
from enum import IntEnum, auto
from signal import Signals
from typing import Any

import jax
import numpy as np

from hackmatrix.core.devices import mesh
from hackmatrix.core.devices.team import Order, Team, is_end
from hackmatrix.core.errors import UserError
from hackmatrix.learning.run.stop import StopRequest
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.devices import choose_devices
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.learning.trainer.config import Course
from hackmatrix.learning.trainer.measures import Measures
from hackmatrix.learning.trainer.trainer import Trainer, TrainState

SAME_SIGNAL = 1.0  # seconds; a signal comes to a process directly and from its parent


class _Order(IntEnum):
    """The verb of an order; the end of all is 0."""

    TRAINER = auto()
    CONNECT = auto()
    INIT = auto()
    RESTORE = auto()
    RUN = auto()
    SUMS = auto()
    GATHER = auto()


class LeadingTrainer(Trainer):
    """A trainer of the first process: the others do what it does."""

    def __init__(self, team: Team, *made_from: Any, **how: Any) -> None:
        """Prepares the programs as `Trainer` does, and connects the devices.

        The others have been told to make the same trainer, by `tell_trainer`.

        Raises:
            LostError: another process is gone.
            UserError: another process can't make it.
        """
        super().__init__(*made_from, **how)
        self._team = team
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
            return super().on_devices(_share_state(self._team, state))

    def gathered(self, state: TrainState) -> TrainState:
        """As in `Trainer`."""
        self._team.order(_Order.GATHER)
        with self._team.together():
            return jax.block_until_ready(super().gathered(state))


def tell_trainer(team: Team, config: TrainConfig, course: Course, *, detect_anomaly: bool) -> None:
    """Lets the other processes make the trainer that this one makes."""
    content = json.dumps([config.as_dict(), course, detect_anomaly]).encode()
    team.order(_Order.TRAINER, len(content))
    with team.together():
        team.share(content)


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
        return order[1]
    with team.together():
        settings, course, detect_anomaly = json.loads(team.share(bytes(order[1])))
    try:
        trainer = _trainer(team, settings, Course(*course), detect_anomaly=detect_anomaly)
    except UserError as error:
        team.next_order(signalled, str(error))
        raise
    state: Any = None
    while not is_end(order := team.next_order(signalled)):
        with team.together():
            state = jax.block_until_ready(_obey(team, trainer, state, order))
    return order[1]


def _trainer(
    team: Team, settings: dict[str, Any], course: Course, *, detect_anomaly: bool
) -> Trainer:
    config, _ = resolve({}, None, settings)
    devices, _ = choose_devices(config, team.size)
    trainer = Trainer(
        config.environment.for_training(config.environment.make(config.run.engine)),
        config.learning,
        config.network,
        devices,
        course,
        agents=config.run.seeds,
        detect_anomaly=detect_anomaly,
    )
    trainer.state_shape()  # traced before the others wait for it
    return trainer


def _obey(team: Team, trainer: Trainer, state: Any, order: Order) -> Any:
    """The state after an order."""
    verb, *values = order
    if verb == _Order.CONNECT:
        _connect(trainer)
        return state
    if verb == _Order.INIT:  # for a new run it comes from `Trainer.start`, which compiles meanwhile
        seed, update = values
        return trainer.init(seed, update) if update else trainer.start(seed)
    if verb == _Order.RESTORE:
        return trainer.on_devices(_share_state(team, trainer.state_shape(portable=True)))
    if verb == _Order.RUN:
        return trainer.run(state, values[0])
    if verb == _Order.SUMS:
        return trainer.take_sums(state)[0]
    if verb == _Order.GATHER:
        trainer.gathered(state)
        return state
    raise AssertionError(f"{verb}: an order of another version of hackmatrix")


def _connect(trainer: Trainer) -> None:
    """Connects the devices of all processes, while all of them are here to do it.

    Between CPUs it fails if one process comes half a minute later than another, and the first
    programs may take longer to compile here than there.
    """
    mesh.sum_over_processes(np.zeros(1, np.uint32), trainer.mesh)


def _share_state(team: Team, state: TrainState) -> TrainState:
    """The first process's state, to the bit; the others give shapes or arrays of the same shapes.

    Returns:
        NumPy arrays.
    """
    leaves, structure = jax.tree.flatten(state)
    arrays = [x if isinstance(x, np.ndarray) else np.zeros(x.shape, x.dtype) for x in leaves]
    content = team.share(b"".join(array.tobytes() for array in arrays))
    starts = np.cumsum([0, *(array.nbytes for array in arrays)])[:-1].tolist()
    shared = [
        np.ndarray(array.shape, array.dtype, content, start)
        for array, start in zip(arrays, starts, strict=True)
    ]
    return jax.tree.unflatten(structure, shared)
