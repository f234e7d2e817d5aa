"""Plays games with fixed seeds, many at once.

Game i of seed s is the game (stream 2**31 + s, episode i); training never uses streams with the top
bit set. Games from `SELECTION` on choose params during training; `hackmatrix evaluate` plays those
from 0 on, so that params are judged on games that did not choose them.

A batch runs until its last game ends, so long games count as much as short ones.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from hackmatrix.evaluation.players import Player
from hackmatrix.interface.environment import Environment, PyTree
from hackmatrix.interface.report import PlayedGames
from hackmatrix.learner.keys import Purpose, keys_for
from hackmatrix.rules.chance import EVALUATION_STREAM

Array = jax.Array

PLACES = 1024  # games at once
SELECTION = 2**30  # the first game that chooses params during training


class _Play(struct.PyTreeNode):
    """State of a batch of games; `played` holds each game's results up to its last step."""

    time: Array  # int32[], actions taken so far
    running: Array  # bool[N]
    env_state: PyTree
    obs: PyTree
    carry: PyTree  # the player's
    played: PlayedGames
    history: Array | None  # uint8[max_steps, N], the actions, if they are recorded


class Limits(NamedTuple):
    """Number of games, their seed, the steps after which they are cut off, and the first game."""

    episodes: int = 1_000
    seed: int = 0
    max_steps: int = 2_000
    first: int = 0


def play(env: Environment, player: Player, limits: Limits) -> PlayedGames:
    """Plays a seed's games to their end or the step limit; NumPy arrays."""
    return Games(env, player, limits).play(player.params)


class _Batch(NamedTuple):
    """What a batch of games leaves."""

    played: PlayedGames
    history: Any


class Recorded(NamedTuple):
    """Played games, and the actions of each in order."""

    games: PlayedGames
    actions: list[bytes]


class Games:
    """The games first .. first + episodes - 1 of a seed, in batches, compiled for all params."""

    def __init__(
        self, env: Environment, player: Player, limits: Limits, *, record: bool = False
    ) -> None:
        """Prepares the games.

        Args:
            env: the environment.
            player: who plays.
            limits: which games, and how long.
            record: whether actions are kept, for `play_recorded`; they are numbers below 256 then.
        """
        self.env = env
        self.player = player
        self.limits = limits
        self.record = record
        self.places = min(limits.episodes, PLACES)
        self._play = jax.jit(self._play_some)

    def play(self, params: PyTree, forbidden: Collection[int] = ()) -> PlayedGames:
        """Plays all games to their end or the step limit; NumPy arrays.

        Args:
            params: the player's.
            forbidden: actions that are masked wherever another one is valid.
        """
        batches = [batch.played for batch in self._batches(params, forbidden)]
        return jax.tree.map(lambda *parts: np.concatenate(parts)[: self.limits.episodes], *batches)

    def play_recorded(self, params: PyTree, forbidden: Collection[int] = ()) -> Recorded:
        """Like `play`, with the actions of each game."""
        batches = self._batches(params, forbidden)
        actions = [
            row[:length].tobytes()
            for batch in batches
            for row, length in zip(batch.history.T, batch.played.lengths, strict=True)
        ]
        played = [batch.played for batch in batches]
        games = jax.tree.map(lambda *parts: np.concatenate(parts)[: self.limits.episodes], *played)
        return Recorded(games, actions[: self.limits.episodes])

    def _batches(self, params: PyTree, forbidden: Collection[int]) -> list[Any]:
        first, seed = self.limits.first, jnp.uint32(self.limits.seed)
        allowed = np.ones(self.env.num_actions, bool)
        allowed[list(forbidden)] = False
        return [
            jax.device_get(self._play(params, jnp.asarray(allowed), seed, jnp.int32(number)))
            for number in range(first, first + self.limits.episodes, self.places)
        ]

    def _play_some(self, params: PyTree, allowed: Array, seed: Array, first: Array) -> "_Batch":
        """Plays the games first .. first + places - 1."""
        numbers = first + jnp.arange(self.places)

        def goes_on(play: _Play) -> Array:
            return jnp.any(play.running) & (play.time < self.limits.max_steps)

        def step(play: _Play) -> _Play:
            return self._step(play, params, allowed, seed, numbers)

        end = jax.lax.while_loop(goes_on, step, self._start(seed, numbers))
        return _Batch(end.played, end.history)

    def _start(self, seed: Array, numbers: Array) -> _Play:
        if hasattr(self.env, "reset_game"):
            stream = jnp.full(self.places, jnp.uint32(EVALUATION_STREAM) + seed)
            obs, env_state = jax.vmap(self.env.reset_game)(stream, numbers.astype(jnp.uint32))
        else:
            keys = keys_for(seed, Purpose.EVALUATION_RESET, each=numbers)
            obs, env_state = jax.vmap(self.env.reset)(keys)
        counts = jnp.zeros(self.places, jnp.int32)
        never = jnp.zeros(self.places, bool)
        keys = keys_for(seed, Purpose.EVALUATION_STEP, each=numbers)
        info = jax.eval_shape(jax.vmap(self.env.step), keys, env_state, counts)[-1]
        played = PlayedGames(
            returns=jnp.zeros(self.places),
            lengths=counts,
            actions=jnp.zeros((self.places, self.env.num_actions), jnp.int32),
            terminated=never,
            info=jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), _kept(info)),
            final_observation=obs,
        )
        return _Play(
            time=jnp.int32(0),
            running=~never,
            env_state=env_state,
            obs=obs,
            carry=self.player.initial_carry(self.places),
            played=played,
            history=jnp.zeros((self.limits.max_steps, self.places), jnp.uint8)
            if self.record
            else None,
        )

    def _step(
        self, play: _Play, params: PyTree, allowed: Array, seed: Array, numbers: Array
    ) -> _Play:
        masks = _allowed(jax.vmap(self.env.action_mask)(play.env_state), allowed)
        keys = keys_for(seed, Purpose.EVALUATION_ACTION, play.time, each=numbers)
        uniforms = jax.vmap(jax.random.uniform)(keys)
        actions, carry = self.player.choose(params, play.carry, play.obs, masks, uniforms)
        keys = keys_for(seed, Purpose.EVALUATION_STEP, play.time, each=numbers)
        obs, env_state, reward, terminated, truncated, info = jax.vmap(self.env.step)(
            keys, play.env_state, actions
        )
        taken = jax.nn.one_hot(actions, self.env.num_actions, dtype=jnp.int32)
        before = play.played
        after = PlayedGames(
            returns=before.returns + reward,
            lengths=before.lengths + 1,
            actions=before.actions + taken,
            terminated=terminated,
            info=_kept(info),
            final_observation=info["final_observation"],
        )
        return _Play(
            time=play.time + 1,
            running=play.running & ~terminated & ~truncated,
            env_state=env_state,
            obs=obs,
            carry=carry,
            played=jax.tree.map(lambda new, old: _where(play.running, new, old), after, before),
            history=None
            if play.history is None
            else play.history.at[play.time].set(actions.astype(jnp.uint8)),
        )


def _allowed(masks: Array, allowed: Array) -> Array:
    """The masks [N, A] without what is not allowed [A], unless nothing would be left."""
    left = masks & allowed
    return jnp.where(jnp.any(left, axis=1, keepdims=True), left, masks)


def _kept(info: dict[str, PyTree]) -> dict[str, PyTree]:
    return {name: value for name, value in info.items() if name != "final_observation"}


def _where(chosen: Array, new: Array, old: Array) -> Array:
    return jnp.where(chosen.reshape(-1, *[1] * (new.ndim - 1)), new, old)
