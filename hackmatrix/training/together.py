"""One training in several processes: the first one orders each step of the trainer.

All that touches the state of training, which is spread over the processes, goes through the
`Trainer`. So process 0 runs the loop of `loop.py` with a trainer that first tells the others what
it does; they do the same, and know neither the schedule nor the disk.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from signal import Signals
from typing import Any

import jax
import numpy as np

from hackmatrix.errors import UserError
from hackmatrix.interface.environment import Environment
from hackmatrix.learner.measures import Measures
from hackmatrix.learner.trainer import Trainer, TrainState
from hackmatrix.processes.team import Order, Team, is_end
from hackmatrix.settings.config import Course, TrainConfig
from hackmatrix.settings.resolve import resolve

# What brings a trainer to another process: its configuration, course and `detect_anomaly`.
MakeTrainer = Callable[[TrainConfig, Course, bool], Trainer]


class _Step(StrEnum):
    """The name of an order."""

    TRAINER = "trainer"
    INIT = "init"
    RESTORE = "restore"
    RUN = "run"
    SUMS = "sums"
    GATHER = "gather"


class LeadingTrainer(Trainer):
    """A trainer of the first process: the others do what it does."""

    def __init__(
        self,
        team: Team,
        env: Environment,
        config: TrainConfig,
        devices: Sequence[jax.Device],
        course: Course,
        *,
        detect_anomaly: bool,
    ) -> None:
        """Prepares the programs; the others have been told by `tell_trainer`."""
        super().__init__(env, config, devices, course, detect_anomaly=detect_anomaly)
        self._team = team

    def init(self, seed: int, update: int = 0) -> TrainState:
        """As in `Trainer`."""
        self._team.order(_Step.INIT, seed, update)
        with self._team.together():
            return jax.block_until_ready(super().init(seed, update))

    def run(self, state: TrainState, num_updates: int) -> TrainState:
        """As in `Trainer`, but waits for the updates."""
        self._team.order(_Step.RUN, num_updates)
        with self._team.together():
            return jax.block_until_ready(super().run(state, num_updates))

    def take_sums(self, state: TrainState) -> tuple[TrainState, Measures]:
        """As in `Trainer`."""
        self._team.order(_Step.SUMS)
        return super().take_sums(state)

    def on_devices(self, state: TrainState) -> TrainState:
        """As in `Trainer`; the others get the state from this process."""
        self._team.order(_Step.RESTORE)
        return super().on_devices(_shared(self._team, state))

    def gathered(self, state: TrainState) -> TrainState:
        """As in `Trainer`."""
        self._team.order(_Step.GATHER)
        with self._team.together():
            return jax.block_until_ready(super().gathered(state))


def tell_trainer(team: Team, config: TrainConfig, course: Course, *, detect_anomaly: bool) -> None:
    """Lets the other processes make the trainer that this one makes."""
    team.order(_Step.TRAINER, config.as_dict(), course, detect_anomaly)


def follow(team: Team, make_trainer: MakeTrainer, signalled: Callable[[], Signals | None]) -> int:
    """Does what the first process orders, until it orders the end; returns its exit code.

    Args:
        team: the processes.
        make_trainer: makes the trainer that the first process has.
        signalled: the signal that asks this process to stop, if any.

    Raises:
        UserError: the trainer can't be made here; the first process gets to know it.
        LostError: other processes are gone.
    """
    order = team.next_order(signalled)
    if is_end(order):
        return int(order[1])
    trainer = _trainer(team, make_trainer, order)
    state: TrainState | None = None
    while not is_end(order := team.next_order(signalled)):
        with team.together():
            state = jax.block_until_ready(_done(team, trainer, state, order))
    return int(order[1])


def _trainer(team: Team, make_trainer: MakeTrainer, order: Order) -> Trainer:
    _, settings, course, detect_anomaly = order
    try:
        config, _ = resolve({}, None, settings)
        trainer = make_trainer(config, Course(*course), detect_anomaly)
    except UserError as error:
        team.answer(str(error))
        raise
    team.answer(None)
    return trainer


def _done(team: Team, trainer: Trainer, state: Any, order: Order) -> TrainState:
    """The state after an order."""
    name, *values = order
    if name == _Step.INIT:  # for a new run it comes from `Trainer.start`, which compiles meanwhile
        seed, update = values
        return trainer.init(seed, update) if update else trainer.start(seed)
    if name == _Step.RESTORE:
        return trainer.on_devices(_shared(team, trainer.state_shape()))
    if name == _Step.RUN:
        return trainer.run(state, *values)
    if name == _Step.SUMS:
        return trainer.take_sums(state)[0]
    if name == _Step.GATHER:
        trainer.gathered(state)
        return state
    raise AssertionError(f"{name}: an order of another version of hackmatrix")


def _shared(team: Team, state: TrainState) -> TrainState:
    """The first process's state as NumPy arrays; the others give one of the same shapes."""
    leaves, structure = jax.tree.flatten(state)
    arrays = [x if isinstance(x, np.ndarray) else np.zeros(x.shape, x.dtype) for x in leaves]
    return jax.tree.unflatten(structure, team.shared(arrays))
