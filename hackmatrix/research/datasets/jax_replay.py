"""Plays games of data sets again in the JAX engine, many at once, a few steps in each call."""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.files import DamagedError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.interface.environment import Environment, PyTree
from hackmatrix.environments.registry import environment_id, make
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.research.datasets.folder import Shard
from hackmatrix.research.evaluation.seeding import DATA

Array = jax.Array
Look = Callable[[PyTree, Array], PyTree]

_STEPS = 32  # in a call


class ReplayBatch(NamedTuple):
    """N games of a shard, of similar lengths, played again; T is the length of the longest.

    What lies beyond the end of a game has no meaning.
    """

    games: NDArray[np.int64]  # [N], their places in the shard
    lengths: NDArray[np.int32]  # [N]
    actions: NDArray[np.uint8]  # [T, N], as recorded
    valid: NDArray[np.bool_]  # [T, N], whether the recorded action was valid
    rewards: NDArray[np.float32]  # [T, N]
    terminated: NDArray[np.bool_]  # [T, N]
    truncated: NDArray[np.bool_]  # [T, N]
    observed: Any  # what `look` returned before each action, arrays [T, N, ...]
    final_observations: Any  # arrays [N, ...]

    @property
    def within(self) -> NDArray[np.bool_]:
        """bool[T, N]: the steps that were recorded."""
        return np.arange(len(self.actions))[:, None] < self.lengths


class Replayer:
    """Replays games of one seed; compiled once."""

    def __init__(
        self, env: Environment, seed: int, games_at_once: int, look: Look | None = None
    ) -> None:
        """Prepares the games.

        Args:
            env: the environment, see `data_environment`.
            seed: of the games.
            games_at_once: games at once.
            look: what is kept of observations [N, ...] and masks bool[N, A] before each action.
        """
        self._env, self._seed, self._games_at_once = env, jnp.uint32(seed), games_at_once
        self._look = look or _nothing
        self._begin = jax.jit(self._begin_all)
        self._step = jax.jit(self._step_all, donate_argnums=0)

    def playable_batches(self, shard: Shard, path: Path) -> Iterator[ReplayBatch]:
        """Like `batches`; raises `DamagedError` where a recorded action of a game is not valid."""
        for batch in self.batches(shard):
            if not batch.valid[batch.within].all():
                raise DamagedError(
                    f"{path}: its games can't be played again; `hackmatrix data verify` says where"
                )
            yield batch

    def batches(self, shard: Shard) -> Iterator[ReplayBatch]:
        """All games of a shard, the shortest first."""
        order = np.argsort(shard.lengths, kind="stable")
        for start in range(0, len(order), self._games_at_once):
            yield self._batch(shard, order[start : start + self._games_at_once])

    def _batch(self, shard: Shard, games: NDArray[np.int64]) -> ReplayBatch:
        count = len(games)
        at = np.resize(games, self._games_at_once)  # as many as were compiled for
        lengths, starts = shard.lengths[at], shard.starts[at]
        longest = int(lengths.max())
        times = np.arange(-(-longest // _STEPS) * _STEPS)[:, None]
        within = times < lengths
        steps = np.minimum(starts + times, len(shard.actions) - 1)
        actions = np.where(within, shard.actions[steps], 0).astype(np.uint8)
        numbers = (shard.first + at).astype(np.int32)
        carry, parts = self._begin(self._seed, numbers), []
        for start in range(0, longest, _STEPS):
            taken = actions[start : start + _STEPS]
            carry, part = self._step(carry, self._seed, numbers, lengths, taken)
            parts.append(jax.device_get(part))
        whole = jax.tree.map(lambda *x: np.concatenate(x)[:longest, :count], *parts)
        valid, rewards, terminated, truncated, views = whole
        return ReplayBatch(
            games=games,
            lengths=lengths[:count],
            actions=actions[:longest, :count],
            valid=valid,
            rewards=rewards,
            terminated=terminated,
            truncated=truncated,
            observed=views,
            final_observations=jax.tree.map(lambda x: x[:count], jax.device_get(carry[-1])),
        )

    def _begin_all(self, seed: Array, games: Array) -> PyTree:
        observations, state = DATA.begin(self._env, seed, games)
        # Copies, because one buffer can't be given up twice.
        return jnp.int32(0), observations, state, jax.tree.map(jnp.copy, observations)

    def _step_all(
        self, carry: PyTree, seed: Array, games: Array, lengths: Array, actions: Array
    ) -> tuple[PyTree, PyTree]:
        def step(carry: PyTree, actions: Array) -> tuple[PyTree, PyTree]:
            time, before, state, final = carry
            actions = actions.astype(jnp.int32)
            masks = jax.vmap(self._env.action_mask)(state)
            chosen = actions[:, None] == jnp.arange(self._env.num_actions)
            keys = DATA.step_keys(seed, jnp.full(games.shape, time), games)
            after, state, rewards, terminated, truncated, info = jax.vmap(self._env.step)(
                keys, state, actions
            )
            is_last = time == lengths - 1
            final = jax.tree.map(
                lambda new, old: jnp.where(is_last.reshape(-1, *[1] * (new.ndim - 1)), new, old),
                info["final_observation"],
                final,
            )
            valid = jnp.any(masks & chosen, axis=1)
            compared = valid, rewards, terminated, truncated, self._look(before, masks)
            return (time + 1, after, state, final), compared

        return jax.lax.scan(step, carry, actions)


def _nothing(observations: PyTree, masks: Array) -> PyTree:
    del observations, masks
    return ()


def data_environment(name: str, **options: Any) -> Environment:
    """The environment in which games of data sets are played.

    Where a game ends, `research/evaluation/games.py` begins the next one.
    """
    if environment_id(name) == ENVIRONMENT_ID:
        return make(name, auto_reset=False, **options)
    return make(name, **options)


def finals_of(observations: PyTree) -> NDArray[np.uint32]:
    """uint32[N]: CRC-32 of the integers of N observations.

    Floats are left out: another program may round them in another way.
    """
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(observations)]
    sums = [0] * len(leaves[0])
    for leaf in leaves:
        if not np.issubdtype(leaf.dtype, np.floating):
            sums = [
                zlib.crc32(row.tobytes(), so_far) for row, so_far in zip(leaf, sums, strict=True)
            ]
    return np.array(sums, np.uint32)


def rewards_of(units: NDArray[np.int32]) -> NDArray[np.float32]:
    """HackMatrix's rewards of their units, as the JAX engine rounds them."""
    return units.astype(np.float32) * np.float32(UNIT)
