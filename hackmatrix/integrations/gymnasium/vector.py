"""Many games at once as a vector environment of Gymnasium, played by the JAX engine."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.devices.mesh import SHARDED, on_devices
from hackmatrix.core.devices.shares import devices_for, use_all_cores
from hackmatrix.core.errors import UserError
from hackmatrix.environments.hackmatrix import EnvState, HackMatrixEnv
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.game.rules.observation import FEATURE_SIZE
from hackmatrix.integrations.gymnasium.observation_spaces import space_of, split

Array = jax.Array
Masks = NDArray[np.bool_]


class _Games(NamedTuple):
    """The games between two steps, on the devices."""

    state: EnvState
    record: Array  # uint8[N, RECORD_SIZE]
    waiting: Array  # bool[N], the game is over, and the next step begins another


class _Step(NamedTuple):
    """The results of a step, of each game."""

    observation: Array
    final_observation: Array | None
    mask: Array  # bool[N, 28]
    reward: Array
    terminated: Array
    truncated: Array
    facts: dict[str, Array]


class _Programs:
    """The programs of an environment, compiled once for all of a process that are alike."""

    def __init__(
        self,
        num_envs: int,
        observation: str,
        max_episode_steps: int | None,
        mode: AutoresetMode,
        reward: str,
    ) -> None:
        """See `GameVectorEnv`; the first call of each program compiles or loads it."""
        use_all_cores()
        enable_compilation_cache()
        self._observation, self._mode = observation, mode
        self._tells_final = mode == AutoresetMode.SAME_STEP
        self._env = HackMatrixEnv(
            observation=observation if observation in FEATURE_SIZE else "classic",
            max_episode_steps=max_episode_steps,
            auto_reset=mode != AutoresetMode.DISABLED,
            reward=reward,
        )
        mesh = devices_for(num_envs)
        self.begin = on_devices(self._begin_games, mesh, SHARDED, SHARDED)
        self.play = on_devices(self._play_games, mesh, SHARDED, SHARDED, donate_argnums=0)
        self.replace = on_devices(_chosen, mesh, SHARDED, SHARDED)
        self.observed = jax.jit(self._shown)

    def _shown(self, records: Array) -> Array:
        return records if self._observation == "compact" else jax.vmap(self._env.features)(records)

    def _begin_games(self, streams: Array) -> tuple[_Games, Array, Array]:
        zero = jnp.zeros_like(streams)
        records, state = jax.vmap(self._env.reset_game)(streams, zero)
        games = _Games(state, records, jnp.zeros(streams.shape, bool))
        return games, jax.vmap(self._env.action_mask)(state), self._shown(records)

    def _play_games(self, games: _Games, actions: Array) -> tuple[_Games, _Step]:
        records, state, reward, terminated, truncated, info = jax.vmap(
            self._env.step, in_axes=(None, 0, 0)
        )(None, games.state, actions)
        final = info.pop("final_observation")
        del info["episode_done"]
        shown, waiting = records, games.waiting
        if self._mode == AutoresetMode.NEXT_STEP:
            state, records = _chosen(waiting, (games.state, games.record), (state, records))
            info, (reward, terminated, truncated) = _chosen(
                waiting,
                jax.tree.map(jnp.zeros_like, (info, (reward, terminated, truncated))),
                (info, (reward, terminated, truncated)),
            )
            shown = _chosen(terminated | truncated, final, records)
            waiting = terminated | truncated
        mask = jax.vmap(self._env.action_mask)(state)
        if not self._tells_final:  # where no action counts, a player may choose any
            mask |= (terminated | truncated)[:, None]
        step = _Step(
            observation=self._shown(shown),
            final_observation=self._shown(final) if self._tells_final else shown,
            mask=mask,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            facts=info,
        )
        return _Games(state, records, waiting), step


_programs = lru_cache(maxsize=16)(_Programs)


class GameVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many games of HackMatrix: `gymnasium.make_vec("HackMatrix-v1", num_envs=...)`.

    Infos: `action_mask` bool[N, 28], all True where the game has ended and no action counts;
    `reward_parts` float32[N, 15] in the order of `rules.rewards.REWARD_PARTS`; `stage`, `score`,
    `programs_owned` and `won` at the end of the step, before a new game begins; `episode_return`
    (of the game's own reward) and `episode_length` so far. Where games end in the mode `SAME_STEP`,
    `final_obs` has their last observations, `final_info` all of these but the mask, and
    `_final_obs` and `_final_info` say which games.

    It can be pickled and copied in the middle of its games.
    """

    metadata = {  # noqa: RUF012 - Gymnasium's name and kind
        "autoreset_mode": AutoresetMode.NEXT_STEP,
        "render_modes": [],
    }

    def __init__(
        self,
        num_envs: int = 1,
        observation: str = "dict",
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        reward: str = "game",
    ) -> None:
        """Makes the environment; the first reset and step compile or load what they need.

        Args:
            num_envs: number of games. Divisible by the number of cores, they use all cores.
            observation: layout, see `layouts.space_of`; "compact" is the fastest.
            max_episode_steps: actions after which a game is truncated; None for no limit.
            autoreset_mode: `NEXT_STEP`: the step that ends a game returns its last observation, and
                the step after it begins the next game, whatever the action, with reward 0.
                `SAME_STEP`: the step that ends a game returns the first observation of the next
                one. `DISABLED`: `reset` with `options={"reset_mask": bool[N]}` begins new games.
            reward: "game", or "progress", with which agents learn
                (`environments/hackmatrix/training_reward.py`)
                better.

        Raises:
            UserError: there is no such layout, mode or reward, or a number is below 1.
        """
        if num_envs < 1:
            raise UserError(f"num_envs must be at least 1, got {num_envs}")
        known = [mode.value for mode in AutoresetMode]
        if autoreset_mode not in (*AutoresetMode, *known):
            raise UserError(
                f"autoreset_mode must be one of {', '.join(known)}, got {autoreset_mode!r}"
            )
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = space_of(observation)
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._layout = observation
        self._made_with = (num_envs, observation, max_episode_steps, self.autoreset_mode, reward)
        self._programs = _programs(*self._made_with)
        self._games: _Games | None = None
        self._masks: Masks = np.zeros((num_envs, NUM_ACTIONS), np.bool_)
        self._over = np.zeros(num_envs, np.bool_)
        self._each = [_OneGame(self, number) for number in range(num_envs)]

    def __getstate__(self) -> dict[str, Any]:
        games = jax.tree.map(np.array, self._games)  # the next step gives up the arrays of JAX
        return self.__dict__ | {"_games": games, "_programs": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._programs = _programs(*self._made_with)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins all games, or those that `options["reset_mask"]` (bool[N]) chooses.

        Args:
            seed: game i is that of seed + i, the same as `gymnasium.make` plays with that seed; a
                sequence gives each its own. None for random games.
            options: only `reset_mask`.

        Raises:
            ClosedEnvironmentError: after `close`.
            UserError: a seed is negative, seeds or mask are not of the number of games, or there is
                no such option.
        """
        self._check_open("reset")
        if unknown := [str(name) for name in options or {} if name != "reset_mask"]:
            raise UserError(f"reset has the option reset_mask alone, got {', '.join(unknown)}")
        begun, masks, observations = self._programs.begin(self._streams(seed))
        chosen = (options or {}).get("reset_mask")
        if chosen is not None and self._games is not None:
            chosen = np.asarray(chosen, np.bool_)
            if chosen.shape != (self.num_envs,):
                raise UserError(f"reset_mask must be bool[{self.num_envs}], got {chosen.shape}")
            begun, masks = self._programs.replace(
                chosen, (begun, masks), (self._games, self._masks)
            )
            observations = self._programs.observed(begun.record)
            self._over &= ~chosen
        else:
            self._over[:] = False
        self._games, self._masks = begun, np.array(masks)
        return self._arranged(np.array(observations)), {"action_mask": self._masks.copy()}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes an action in each game; see `gymnasium.vector.VectorEnv.step`.

        Raises:
            ClosedEnvironmentError: after `close`.
            UserError: before the first reset, wrong actions, or, with autoreset disabled, a game
                that has ended.
        """
        self._check_open("step")
        if self._games is None:
            raise UserError("there are no games yet: call reset first")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or not np.issubdtype(actions.dtype, np.integer):
            got = f"{actions.dtype}{list(actions.shape)}"
            raise UserError(f"actions must be integers [{self.num_envs}], got {got}")
        if actions.min() < 0 or actions.max() >= NUM_ACTIONS:
            got = f"{actions.min()}..{actions.max()}"
            raise UserError(f"actions must be 0..{NUM_ACTIONS - 1}, got {got}")
        if self._over.any():
            number = int(self._over.sum())
            raise UserError(f"{number} games have ended: reset them, see options of `reset`")
        self._games, taken = self._programs.play(self._games, actions.astype(np.int32))
        # Copies, as nobody may write to JAX's own memory.
        step = jax.tree.map(np.array, taken._replace(final_observation=None))
        ended = step.terminated | step.truncated
        self._masks = step.mask
        infos: dict[str, Any] = {"action_mask": step.mask.copy(), **step.facts}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and ended.any():
            last = self._arranged(np.array(taken.final_observation))
            final = np.full(self.num_envs, None, object)
            for i in np.flatnonzero(ended):
                final[i] = jax.tree.map(lambda of_all, i=i: of_all[i], last)
            facts = step.facts | {f"_{name}": ended for name in step.facts}
            infos |= {"final_obs": final, "_final_obs": ended}
            infos |= {"final_info": facts, "_final_info": ended}
        if self.autoreset_mode == AutoresetMode.DISABLED:
            self._over = ended.copy()
        observations = self._arranged(step.observation)
        return observations, step.reward, step.terminated, step.truncated, infos

    def action_masks(self) -> Masks:
        """bool[N, 28], the `action_mask` of the last infos. For sb3-contrib."""
        return self._masks.copy()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The results of a method of each game, or the values of an attribute. See `_OneGame`.

        Raises:
            AttributeError: games have nothing of that name.
        """
        found = [getattr(game, name) for game in self._each]
        return tuple(each(*args, **kwargs) if callable(each) else each for each in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each game; see `call`."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each game, which `get_attr` then returns.

        Args:
            name: of the attribute.
            values: a list or tuple with a value for each game, or one value for all.

        Raises:
            UserError: there are not as many values as games.
        """
        each = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(each) != self.num_envs:
            raise UserError(f"values must be one or {self.num_envs}, got {len(each)}")
        for game, value in zip(self._each, each, strict=True):
            setattr(game, name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Forgets the games."""
        self._games = None

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise ClosedEnvironmentError(f"{what}: the environment is closed, make another one")

    def _streams(self, seed: int | Sequence[int | None] | None) -> NDArray[np.uint32]:
        given = np.asarray(seed, dtype=object)
        seeds = given.ravel().tolist()
        numbers = [each for each in seeds if each is not None]
        wrong = [each for each in numbers if not isinstance(each, int | np.integer) or each < 0]
        if not given.shape and seed is not None and not wrong:
            self._np_random, self._np_random_seed = np_random(int(numbers[0]))
            seeds = [numbers[0] + i for i in range(self.num_envs)]
        elif seed is None:
            seeds *= self.num_envs
        if wrong or len(seeds) != self.num_envs:
            raise UserError(f"seed must be one number or {self.num_envs}, each at least 0 or None")
        drawn = iter(self.np_random.integers(EVALUATION_STREAM, size=seeds.count(None)))
        streams = [next(drawn) if each is None else each % EVALUATION_STREAM for each in seeds]
        return np.array(streams, np.uint32)

    def _arranged(self, observations: Any) -> Any:
        return split(observations) if self._layout == "dict" else observations


class _OneGame:
    """One of the games, for `call`, `get_attr` and `set_attr`."""

    render_mode = None

    def __init__(self, games: GameVectorEnv, number: int) -> None:
        """Shows game `number` of `games`."""
        self.observation_space = games.single_observation_space
        self.action_space = games.single_action_space
        self.metadata = games.metadata
        self._games, self._number = games, number

    @property
    def spec(self) -> Any:
        """By which Gymnasium made the games."""
        return self._games.spec

    def action_masks(self) -> Masks:
        """bool[28], the valid actions; all after the end of the game."""
        return self._games._masks[self._number].copy()


def _chosen(chosen: Array, these: Any, others: Any) -> Any:
    """For each game the values of `these` where it is chosen, else of `others`."""

    def choose(this: Array, other: Array) -> Array:
        return jnp.where(chosen.reshape(-1, *[1] * (this.ndim - 1)), this, other)

    return jax.tree.map(choose, these, others)
