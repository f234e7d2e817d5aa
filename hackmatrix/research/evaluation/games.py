"""Plays games with fixed seeds, many at once.

Game i of seed s is the game (stream 2**31 + s, episode i) of HackMatrix; training never uses
streams with the top bit set. Games from `SELECTION` on choose params during training; `hackmatrix
evaluate` plays those from 0 on, so that params are judged on games that did not choose them. Data
sets have games of their own: (stream s, episode i).

Where a game ends, the next one starts in its place. All are played to their end, so long games
count as much as short ones.
"""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from hackmatrix.agents.roster.batch_players import BatchPlayer
from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.checked_report import report_of
from hackmatrix.environments.interface.environment import Environment, PyTree
from hackmatrix.environments.interface.report import PlayedGames
from hackmatrix.game.jaxgame.batch import for_few
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.report import Report, report_on
from hackmatrix.research.evaluation.seeding import EVALUATION, SeedFamily

Array = jax.Array

SELECTION = 2**30  # the first game that chooses params during training
_FEWEST = 64  # games that are worth a thread
# Moves of a compiled call: where two run at once, XLA frees what a loop's iterations took only when
# the loop ends.
_MOVES = 25


class _Slots(struct.PyTreeNode):
    """Games under way, one in each of N places."""

    episode: Array  # int32[N], which game it is
    running: Array  # bool[N]
    env_state: PyTree
    obs: PyTree
    carry: PyTree  # the player's
    played: PlayedGames  # results up to the last step


class _Play(struct.PyTreeNode):
    """All games: those under way, and the results of E games, whether ended or not yet begun."""

    slots: _Slots
    next: Array  # int32[], the first game that has not begun
    results: PlayedGames
    history: "_History | None"  # of all actions, if they are recorded


class _History(struct.PyTreeNode):
    """The steps of E games."""

    actions: Array  # uint8[E, max_steps]
    rewards: Array | None  # float32[E, max_steps]; None if they are not kept


def play(env: Environment, player: BatchPlayer, limits: Limits) -> PlayedGames:
    """Plays a seed's games to their end or the step limit; NumPy arrays."""
    return EvaluationGames(env, player, limits).play(player.params)


class RecordedGames(NamedTuple):
    """Played games, and their S steps, one game after the other."""

    games: PlayedGames
    actions: np.ndarray  # uint8[S]
    rewards: np.ndarray | None  # float32[S], if they were kept

    def actions_of_each(self) -> list[bytes]:
        """The actions of each game in order."""
        parts = np.split(self.actions, np.cumsum(self.games.lengths)[:-1])
        return [part.tobytes() for part in parts]


class EvaluationGames:
    """The games first .. first + episodes - 1 of a seed, compiled for all params."""

    def __init__(
        self,
        env: Environment,
        player: BatchPlayer,
        limits: Limits,
        *,
        record: bool = False,
        rewards: bool = False,
        family: SeedFamily = EVALUATION,
    ) -> None:
        """Prepares the games.

        Args:
            env: the environment.
            player: who plays.
            limits: which games, and how long.
            record: whether actions are kept, for `play_recorded`; they are numbers below 256 then.
            rewards: whether the rewards of recorded games are kept too.
            family: which games the seed and the numbers mean.
        """
        self.env = env
        self.player = player
        self.limits = limits
        self.record = record
        self.rewards = rewards
        self.family = family
        self._parts = max(1, min(player.threads, limits.episodes // _FEWEST))
        self._episodes = -(-limits.episodes // self._parts)  # of each part
        self.num_slots = min(self._episodes, player.games_at_once)
        self._begin: Any = jax.jit(self._start)
        self._go_on: Any = jax.jit(self._some_moves, donate_argnums=0)

    def play(
        self, params: PyTree, forbidden: Collection[int] = (), first: int | None = None
    ) -> PlayedGames:
        """Plays all games to their end or the step limit; NumPy arrays.

        Args:
            params: the player's.
            forbidden: actions that are masked wherever another one is valid.
            first: number of the first game, if it is not that of the limits.
        """
        return self._play_all(params, forbidden, first)[0]

    def report(self, params: PyTree) -> Report:
        """Plays all games, as `play` does, and reports on them.

        Raises:
            UserError: the environment's `report` fails, or returns something else.
        """
        games = self.play(params)
        return report_on(report_of(self.env, games), games, self.limits)

    def play_recorded(
        self, params: PyTree, forbidden: Collection[int] = (), first: int | None = None
    ) -> RecordedGames:
        """Like `play`, with the actions of each game."""
        games, history = self._play_all(params, forbidden, first)
        longest = int(games.lengths.max())
        taken = np.arange(longest) < games.lengths[:, None]
        actions, rewards = history.actions[:, :longest][taken], None
        if history.rewards is not None:
            rewards = history.rewards[:, :longest][taken]
        return RecordedGames(games, actions, rewards)

    def _play_all(
        self, params: PyTree, forbidden: Collection[int], first: int | None = None
    ) -> tuple[PlayedGames, Any]:
        allowed = np.ones(self.env.num_actions, bool)
        allowed[list(forbidden)] = False
        start = self.limits.first if first is None else first
        games, history = self._play_parts(
            [
                (params, jnp.asarray(allowed), jnp.uint32(self.limits.seed), jnp.int32(first))
                for first in range(start, start + self._parts * self._episodes, self._episodes)
            ]
        )
        if (games.actions.sum(axis=1) < games.lengths).any():
            raise UserError(
                f"actions must be 0..{self.env.num_actions - 1}, the policy took others"
            )
        return games, history

    def _play_parts(self, parts: list[tuple[Any, ...]]) -> Any:
        """The results of the parts, each played in a thread; the last may have games too many."""
        if len(parts) == 1:
            return self._play_part(parts[0])
        if isinstance(self._begin, jax.stages.Wrapped):  # else each thread would compile it
            lowered = self._begin.lower(*parts[0][-2:])
            self._go_on = self._go_on.lower(lowered.out_info, *parts[0]).compile()
            self._begin = lowered.compile()
        with ThreadPoolExecutor(len(parts)) as pool:
            played = pool.map(self._play_part, parts)
            count = self.limits.episodes
            return jax.tree.map(lambda *arrays: np.concatenate(arrays)[:count], *played)

    @with_jax_defaults
    def _play_part(self, part: tuple[Any, ...]) -> tuple[PlayedGames, _History | None]:
        play = self._begin(*part[-2:])
        while play.slots.running.any():
            play = self._go_on(play, *part)
        results: tuple[PlayedGames, _History | None] = jax.device_get((play.results, play.history))
        return results

    def _some_moves(
        self, play: _Play, params: PyTree, allowed: Array, seed: Array, first: Array
    ) -> _Play:
        def goes_on(carry: tuple[Array, _Play]) -> Array:
            return (carry[0] < _MOVES) & jnp.any(carry[1].slots.running)

        def move(carry: tuple[Array, _Play]) -> tuple[Array, _Play]:
            return carry[0] + 1, self._step(carry[1], params, allowed, seed, first)

        return jax.lax.while_loop(goes_on, move, (jnp.int32(0), play))[1]

    def _start(self, seed: Array, first: Array) -> _Play:
        count = self._episodes
        slots = self._begin_games(seed, first + jnp.arange(self.num_slots))

        def for_each_game(x: Array) -> Array:
            return jnp.zeros((count, *x.shape[1:]), x.dtype)

        return _Play(
            slots=slots,
            next=first + self.num_slots,
            results=jax.tree.map(for_each_game, slots.played),
            history=self._empty_history(),
        )

    def _empty_history(self) -> _History | None:
        if not self.record:
            return None
        shape = (self._episodes, self.limits.max_steps)
        return _History(jnp.zeros(shape, jnp.uint8), jnp.zeros(shape) if self.rewards else None)

    def _begin_games(self, seed: Array, episodes: Array) -> _Slots:
        """The games with these numbers, before their first action."""
        obs, env_state = self.family.begin(self.env, seed, episodes)
        counts = jnp.zeros(episodes.size, jnp.int32)
        never = jnp.zeros(episodes.size, bool)
        keys = self.family.step_keys(seed, counts, episodes)
        info = jax.eval_shape(jax.vmap(self.env.step), keys, env_state, counts)[-1]
        played = PlayedGames(
            returns=jnp.zeros(episodes.size),
            lengths=counts,
            actions=jnp.zeros((episodes.size, self.env.num_actions), jnp.int32),
            terminated=never,
            info=jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), _without_observation(info)),
            final_observation=obs,
        )
        carry = self.player.initial_carry(episodes.size)
        return _Slots(episodes, ~never, env_state, obs, carry, played)

    def _step(
        self, play: _Play, params: PyTree, allowed: Array, seed: Array, first: Array
    ) -> _Play:
        slots, actions, reward, ended = self._step_slots(play.slots, params, allowed, seed)
        times, games = play.slots.played.lengths, self._episodes
        index = slots.episode - first
        due = jnp.where(ended, index, games)  # beyond the last: dropped
        results = jax.tree.map(
            lambda all_, new: all_.at[due].set(new, mode="drop"), play.results, slots.played
        )
        history = play.history
        if history is not None:
            index = jnp.where(play.slots.running, index, games)
            now = _History(actions.astype(jnp.uint8), None if history.rewards is None else reward)
            history = jax.tree.map(
                lambda all_, new: all_.at[index, times].set(new, mode="drop"), history, now
            )
        slots = slots.replace(running=slots.running & ~ended)
        if games > self.num_slots:  # else none are left, and nothing needs to be compiled for them
            number = play.next + jnp.cumsum(ended) - 1
            due = ended & (number < first + games)
            slots = for_few(due, lambda _, some: self._begin_games(seed, some), slots, number)
        return _Play(slots, play.next + jnp.sum(ended), results, history)

    def _step_slots(
        self, slots: _Slots, params: PyTree, allowed: Array, seed: Array
    ) -> tuple[_Slots, Array, Array, Array]:
        """The games after an action each, the actions, rewards, and which games ended by it."""
        before, episodes = slots.played, slots.episode
        masks = _restrict(jax.vmap(self.env.action_mask)(slots.env_state), allowed)
        masks &= slots.running[:, None]
        keys = self.family.action_keys(seed, before.lengths, episodes)
        actions, carry = self.player.choose(params, slots.carry, slots.obs, masks, keys)
        keys = self.family.step_keys(seed, before.lengths, episodes)
        obs, env_state, reward, terminated, truncated, info = jax.vmap(self.env.step)(
            keys, slots.env_state, actions
        )
        taken = jax.nn.one_hot(actions, self.env.num_actions, dtype=jnp.int32)
        after = PlayedGames(
            returns=before.returns + reward,
            lengths=before.lengths + 1,
            actions=before.actions + taken,
            terminated=terminated,
            info=_without_observation(info),
            final_observation=info["final_observation"],
        )
        ended = terminated | truncated | (after.lengths >= self.limits.max_steps)
        slots = _Slots(episodes, slots.running, env_state, obs, carry, after)
        return slots, actions, reward, slots.running & ended


def _restrict(masks: Array, allowed: Array) -> Array:
    """The masks [N, A] without what is not allowed [A], unless nothing would be left."""
    left = masks & allowed
    return jnp.where(jnp.any(left, axis=1, keepdims=True), left, masks)


def _without_observation(info: dict[str, PyTree]) -> dict[str, PyTree]:
    return {name: value for name, value in info.items() if name != "final_observation"}
