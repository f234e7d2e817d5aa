"""Measures environment steps per second, so that XLA can skip no part of the work.

Some of the timed games are replayed by the Python engine, which must agree.
"""

import dataclasses
import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from hackmatrix.core import machine
from hackmatrix.core.devices.mesh import (
    REPLICATED,
    SHARDED,
    devices_for,
    first_index,
    on_devices,
    psum,
    use_all_cores,
)
from hackmatrix.environments.hackmatrix import EnvState, HackMatrixEnv
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.stage import begin_stage
from hackmatrix.game.engine.state import Enemy, State
from hackmatrix.game.foresight.features import features
from hackmatrix.game.jaxgame.bitboard import nth_bit
from hackmatrix.game.jaxgame.dice import draw, to_range
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.board import CELLS, NEIGHBOUR
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.observation import BYTE, FIELD, RESOURCE
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE, STAGE_INTERVAL
from hackmatrix.research.bench.options import EnvOptions
from hackmatrix.research.bench.replayed_games import (
    Record,
    ReplayError,
    ReplayStart,
    ReplayTotals,
    new_game,
    position,
    replay,
)

Array = jax.Array

_DEFAULT = EnvOptions()
REPLAYED = 64  # games
RICH_POSITIONS = 256
SEGMENT = 8  # actions after which a rich game is reset to its start, so that it stays rich


@dataclass(frozen=True)
class Speed:
    """Steps per second, and statistics of the games."""

    num_envs: int
    num_steps: int
    play: str
    observation: str
    engine: str
    rates: list[float]  # steps/s of each repeat
    episodes: int  # number that ended in all repeats
    totals: ReplayTotals  # totals over the replayed games

    @property
    def mean_episode_length(self) -> float:
        """Mean number of steps per finished game."""
        return len(self.rates) * self.num_envs * self.num_steps / max(self.episodes, 1)

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        median = statistics.median(self.rates)
        return {
            "steps_per_second": median,
            "num_envs": self.num_envs,
            "num_steps": self.num_steps,
            "play": self.play,
            "observation": self.observation,
            "engine": self.engine,
            "repeats": len(self.rates),
            "median": median,
            "min": min(self.rates),
            "max": max(self.rates),
            "mean_episode_length": self.mean_episode_length,
            "mean_enemies": self.totals.enemies / self.totals.steps,
            "mean_stage": self.totals.stage / self.totals.steps,
            "stages_per_step": self.totals.stages / self.totals.steps,
            "replayed_games": self.totals.games,
            "replayed_steps": self.totals.steps,
            "devices": devices_for(self.num_envs).size,
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as text."""
        figures = self.as_dict()
        return (
            f"{figures['median']:,.0f} env steps/s (median of {figures['repeats']}; "
            f"{figures['min']:,.0f} to {figures['max']:,.0f}): {self.num_envs:,} games, "
            f"{self.play} play, {self.observation} observation, {self.engine} engine, "
            f"{figures['devices']} x {figures['device']}, "
            f"jax {figures['versions']['jax']}\n"
            f"a game lasts {figures['mean_episode_length']:.1f} steps; "
            f"{figures['mean_enemies']:.2f} enemies on a board, stage {figures['mean_stage']:.2f}, "
            f"{figures['stages_per_step']:.4f} stages laid out a step\n"
            f"{self.totals.games} of the games, {self.totals.steps:,} steps, replayed in the "
            f"Python engine: equal"
        )


def measure(options: EnvOptions) -> Speed:
    """Times `repeats` runs of all games, after one that compiles.

    Raises:
        ReplayError: the Python engine plays the timed games differently.
    """
    use_all_cores()
    bench = EnvBench(
        options.num_envs,
        options.num_steps,
        options.play,
        options.observation,
        engine=options.engine,
    )
    for _ in range(options.repeats):
        bench.repeat()
    return bench.result()


class _Carry(NamedTuple):
    """State of the loop over steps. XLA must compute observations and features to carry them."""

    state: EnvState
    observation: Array  # uint8[games, RECORD_SIZE]
    features: Array | None  # float32[games, feature_size]


class _Run(NamedTuple):
    """The result of one call of the timed function."""

    carry: _Carry
    sums: dict[str, Any]  # over all steps and games
    record: Record  # of the sampled games


class EnvBench:
    """Games in progress: `repeat` times some of their steps, `result` replays and reports.

    In random play all games start at stage 1. In harder play the first half walks to the exit, and
    the second half plays random actions from crowded positions of later stages and is reset to them
    every few steps. Each device has an equal share of both.
    """

    def __init__(
        self,
        num_envs: int = _DEFAULT.num_envs,
        num_steps: int = _DEFAULT.num_steps,
        play: str = "random",
        observation: str = "compact",
        positions: list[State] | None = None,
        *,
        engine: str = "auto",
    ) -> None:
        """Starts the games and runs them once to compile.

        Args:
            num_envs: games in parallel.
            num_steps: steps of each game in one repeat.
            play: "random" or "harder".
            observation: "compact", or "features", which computes the float features at each step.
            positions: start all games from these instead, play at random, and reset them
                every few steps.
            engine: see `HackMatrixEnv`.
        """
        self.num_envs, self.num_steps = num_envs, num_steps
        self.play, self.observation = play, observation
        self.rates: list[float] = []
        self._env = HackMatrixEnv(engine=engine)
        mesh = devices_for(num_envs)
        self._share = num_envs // mesh.size  # games of a device
        self._walkers = self._share // 2 if play == "harder" else 0
        if positions is None and play == "harder":
            positions = [rich_position(number) for number in range(RICH_POSITIONS)]
        self._positions = positions or []
        self._first_rich = self._walkers if self._positions else self._share
        self._segment = math.gcd(num_steps, SEGMENT) if self._positions else num_steps
        replayed = min(self._share, -(-REPLAYED // mesh.size))
        self._sample = np.linspace(0, self._share - 1, replayed).astype(int)  # of each share
        self._sampled = (np.arange(0, num_envs, self._share)[:, None] + self._sample).reshape(-1)
        streams = jnp.arange(num_envs, dtype=jnp.uint32)
        self._carry = on_devices(self._begin, mesh, SHARDED, SHARDED)(streams)
        self._starts = None
        if self._positions:
            rich = self._share - self._first_rich
            self._starts = load(self._env, self._positions, self._carry.state, rich)
        record = PartitionSpec(None, *SHARDED)
        outputs = _Run(carry=SHARDED, sums=REPLICATED, record=record)  # type: ignore[arg-type]
        self._timed = on_devices(
            self._run, mesh, (SHARDED, REPLICATED, REPLICATED), outputs, donate_argnums=0
        )
        self._records: list[Record] = []
        self._episodes = 0
        self._repeat()

    def repeat(self) -> float:
        """Times one run and returns its steps per second."""
        seconds, episodes = self._repeat()
        self._episodes += episodes
        self.rates.append(self.num_envs * self.num_steps / seconds)
        return self.rates[-1]

    def _begin(self, streams: Array) -> _Carry:
        observed, state = jax.vmap(self._env.reset_game, (0, None))(streams, jnp.uint32(0))
        return _Carry(state, observed, self._features(observed))

    def _repeat(self) -> tuple[float, int]:
        number = jnp.uint32(len(self._records))
        start = time.perf_counter()
        run = jax.block_until_ready(self._timed(self._carry, self._starts, number))
        seconds = time.perf_counter() - start
        self._carry = run.carry
        self._records.append(jax.device_get(run.record))
        return seconds, int(run.sums["episodes"])

    def program(self) -> str:
        """The HLO text of the timed function as XLA compiled it."""
        number = jnp.uint32(0)
        return self._timed.lower(self._carry, self._starts, number).compile().as_text() or ""

    def result(self, games: int = REPLAYED) -> Speed:
        """Replays some of the games and returns the figures.

        Args:
            games: maximum number of games to replay, up to `REPLAYED`.

        Raises:
            ReplayError: the Python engine plays them differently.
        """
        every = -(-len(self._sampled) // games)
        sample = self._sampled[::every]
        parts = zip(*self._records, strict=True)
        record = Record(*(np.concatenate(part)[:, ::every] for part in parts))
        seen = replay(record, [self._start_of(int(game)) for game in sample])
        self._check_features(sample, np.asarray(record.observation[-1]))
        engine = self._env.engine_name()
        settings = self.num_envs, self.num_steps, self.play, self.observation, engine
        return Speed(*settings, self.rates, self._episodes, seen)

    def _start_of(self, game: int) -> ReplayStart:
        rich = game % self._share - self._first_rich
        if rich < 0:
            return new_game(game)
        place = rich % len(self._positions)
        return position(self._positions[place], self._segment)

    def _check_features(self, sample: np.ndarray, observations: np.ndarray) -> None:
        if self._carry.features is None:
            return
        made = np.asarray(self._carry.features[sample])
        for got, record in zip(made, observations, strict=True):
            expected = np.array(features(record.tobytes(), self._env.layout), np.float32)
            if not np.allclose(got, expected, rtol=1e-6, atol=1e-6):  # XLA rounds otherwise
                raise ReplayError("the Python engine makes other features from an observation")

    def _features(self, observation: Array) -> Array | None:
        if self.observation == "compact":
            return None
        return jax.vmap(self._env.features)(observation)

    def _run(self, carry: _Carry, starts: EnvState | None, repeat: Array) -> _Run:
        """The timed function: `num_steps` steps of all games."""
        steps = jnp.arange(self.num_steps, dtype=jnp.uint32).reshape(-1, self._segment)

        def segment(carry: _Carry, steps: Array) -> tuple[_Carry, Any]:
            carry = carry._replace(state=self._put_back(carry.state, starts))
            return jax.lax.scan(partial(self._step, repeat), carry, steps)

        carry, (sums, record) = jax.lax.scan(segment, carry, steps)
        return _Run(
            carry=carry,
            sums=psum(jax.tree.map(lambda x: jnp.sum(x, axis=(0, 1)), sums)),
            record=jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), record),
        )

    def _put_back(self, state: EnvState, starts: EnvState | None) -> EnvState:
        if starts is None:
            return state
        rich = self._first_rich
        return jax.tree.map(lambda x, start: x.at[rich:].set(start), state, starts)

    def _step(
        self, repeat: Array, carry: _Carry, step: Array
    ) -> tuple[_Carry, tuple[dict[str, Any], Record]]:
        mask = jax.vmap(self._env.action_mask)(carry.state)
        bits = jax.vmap(self._env.action_bits)(carry.state)
        games = first_index(self._share) + jnp.arange(self._share)
        action = self._actions(carry.observation, bits, random_words(games, repeat, step))
        observation, state, reward, terminated, _, info = jax.vmap(
            self._env.step, in_axes=(None, 0, 0)
        )(None, carry.state, action)
        floats = self._features(observation)
        record = Record(bits, action, info["reward_parts"], reward, terminated, observation)
        sums = {
            "observation": jnp.sum(_as_uint32(observation), axis=0),
            "features": None if floats is None else jnp.sum(floats[self._sample], axis=0),
            "mask": jnp.sum(mask, axis=0, dtype=jnp.uint32),
            "parts": jnp.sum(info["reward_parts"], axis=0),
            "reward": jnp.sum(reward),
            "episodes": jnp.sum(terminated, dtype=jnp.uint32),
        }
        sampled = jax.tree.map(lambda x: x[self._sample], record)
        return _Carry(state, observation, floats), (sums, sampled)

    def _actions(self, observation: Array, bits: Array, random_bits: Array) -> Array:
        n = self._walkers
        if n == 0:
            return random_actions(bits, random_bits)
        walked = walks_to_exit(observation[:n], bits[:n], random_bits[:n])
        return jnp.concatenate([walked, random_actions(bits[n:], random_bits[n:])])


def _as_uint32(records: Array) -> Array:
    """uint32[games, RECORD_SIZE / 4]: four bytes each, as summing single bytes takes longer."""
    return jax.lax.bitcast_convert_type(records.reshape(len(records), -1, 4), jnp.uint32)


# --- Policies that cost almost nothing compared to a step of the game: they use bits and bytes ----


_NEIGHBOURS = np.array([[-1 if c is None else c for c in row] for row in NEIGHBOUR], np.int32)
_FAR = 99  # larger than any walking distance
_STRAYS = 8  # one in 8 actions of a walker is random, so that programs are run too


def random_words(games: Array, run: Array, step: Array) -> Array:
    """A random word for each game at each step, uint32[n], by the hash function of the dice."""
    return draw(games.astype(jnp.uint32), run, step, 0, 0)


def random_actions(bits: Array, random_bits: Array) -> Array:
    """Uniformly random valid actions, int32[n].

    Args:
        bits: uint32[n], the valid actions, at least one.
        random_bits: uint32[n], random words.
    """
    return nth_bit(bits, to_range(random_bits, lax.population_count(bits)))


def walks_to_exit(observations: Array, bits: Array, random_bits: Array) -> Array:
    """int32[n]: usually the direction that leads nearest to the exit, else a random valid action.

    Args:
        observations: uint8[n, RECORD_SIZE].
        bits: uint32[n], the valid actions, at least one.
        random_bits: uint32[n], random words.
    """
    cells = jnp.asarray(_NEIGHBOURS)[observations[:, BYTE["cell"]]]  # int32[n, 4]
    there = jnp.take_along_axis(observations, RESOURCE + jnp.maximum(cells, 0), axis=1)
    valid = (bits[:, None] >> np.arange(NUM_DIRECTIONS, dtype=np.uint32)) & 1 == 1
    distance = jnp.where(valid, FIELD["exit_distance"].of(there).astype(jnp.int32), _FAR)
    walks = valid.any(axis=1) & (random_bits % _STRAYS != 0)
    return jnp.where(walks, jnp.argmin(distance, axis=1), random_actions(bits, random_bits))


# Crowded positions of later stages, made by the Python engine and loaded into a batch of games.


FIRST_RICH_STAGE = 3
RICH_ENEMIES = range(6, 15)
STREAM = 1 << 30  # stream of the first position; games that start at stage 1 have smaller ones


def rich_position(seed: int) -> State:
    """Position `seed` of harder play: stage 3 to 8 and 6 to 14 enemies."""
    rng = random.Random(seed)
    stage = rng.randint(FIRST_RICH_STAGE, LAST_STAGE)
    return crowded_position(seed, stage, rng.choice(RICH_ENEMIES))


def crowded_position(seed: int, stage: int, enemies: int) -> State:
    """The start of a stage with a number of enemies on the board and no transmissions.

    Args:
        seed: seed of the position.
        stage: 1..8.
        enemies: 0..32; they share cells only when no cell is free.
    """
    rng = random.Random(seed)
    state = Game.new(STREAM + seed).state
    state.stage = stage
    state.interval = STAGE_INTERVAL - stage
    state.transmissions = []
    begin_stage(state)
    state.transmissions, state.events = [], []
    state.player.credits = state.player.energy = rng.randint(5, 20)
    state.player.siphons = rng.randint(0, 2)
    state.owned = rng.sample(range(len(PROGRAMS)), rng.randint(2, 8))
    free = [c for c in range(CELLS) if not state.cells[c].is_block and c != state.player.cell]
    rng.shuffle(free)
    for place in range(enemies):
        kind = rng.choice(list(EnemyType))
        state.enemies.append(Enemy(kind, free[place % len(free)], MAX_HP[kind]))
    return state


def load(env: HackMatrixEnv, positions: Sequence[State], like: EnvState, games: int) -> EnvState:
    """The positions, repeated in turn, as the states of `games` games.

    Args:
        env: the environment.
        positions: states of the Python engine.
        like: states of the environment; supply the fields that are not part of the game.
        games: number of games.
    """
    turns = np.arange(games) % len(positions)
    loaded = jax.tree.map(
        lambda *leaves: jnp.asarray(np.stack(leaves)[turns]),
        *map(env.games.from_engine, positions),
    )
    rest = jax.tree.map(lambda leaf: jnp.array(leaf[:games], copy=True), like)
    return dataclasses.replace(rest, game=loaded)
