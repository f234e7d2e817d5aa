"""Many games at once as a vector environment of Gymnasium, played by the JAX engine."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hackmatrix.bench.devices import devices_for, use_all_cores
from hackmatrix.errors import UserError
from hackmatrix.gym.layouts import space_of, split
from hackmatrix.jaxgame import EnvState, HackMatrixEnv
from hackmatrix.learner.mesh import SHARDED, on_devices
from hackmatrix.rules.actions import NUM_ACTIONS
from hackmatrix.rules.chance import EVALUATION_STREAM
from hackmatrix.rules.observation import FEATURE_SIZE
from hackmatrix.storage.compilation_cache import enable_compilation_cache

Array = jax.Array
Masks = NDArray[np.bool_]


class _Games(NamedTuple):
    """The games between two steps, on the devices."""

    state: EnvState
    record: Array  # uint8[N, RECORD_SIZE]
    waiting: Array  # bool[N], the game is over, and the next step begins another


class _Step(NamedTuple):
    """What a step tells of each game."""

    observation: Array
    final_observation: Array | None
    mask: Array  # bool[N, 28], of the game that the next action belongs to
    reward: Array
    terminated: Array
    truncated: Array
    facts: dict[str, Array]


class GameVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many games of HackMatrix: `gymnasium.make_vec("HackMatrix-v1", num_envs=...)`.

    Infos: `action_mask` bool[N, 28]; `reward_parts` float32[N, 15] in the order of
    `rules.rewards.REWARD_PARTS`; `stage`, `score`, `programs_owned` and `won` at the end of the
    step, before a new game begins; `episode_return` (of the game's own reward) and
    `episode_length` so far. Where games end in the mode `SAME_STEP`, `final_obs` has their last
    observations and `_final_obs` says which.
    """

    metadata = {  # noqa: RUF012 - Gymnasium's name and kind
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": [],
    }

    def __init__(
        self,
        num_envs: int = 1,
        observation: str = "dict",
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        reward: str = "game",
    ) -> None:
        """Makes the environment; the first reset and step compile or load what they need.

        Args:
            num_envs: number of games. Divisible by the number of cores, they use all cores.
            observation: layout, see `layouts.space_of`; "compact" is the fastest.
            max_episode_steps: actions after which a game is truncated; None for no limit.
            autoreset_mode: `SAME_STEP`: the step that ends a game returns the first observation of
                the next one. `NEXT_STEP`: it returns the last one, and the step after it begins the
                next game, whatever the action, with reward 0. `DISABLED`: `reset` with
                `options={"reset_mask": bool[N]}` begins new games.
            reward: "game", or "progress" (`jaxgame/training_reward.py`), with which agents learn
                better.

        Raises:
            UserError: there is no such layout or reward, or a number is below 1.
        """
        if num_envs < 1:
            raise UserError(f"num_envs must be at least 1, got {num_envs}")
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = space_of(observation)
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._layout = observation
        self._tells_final = self.autoreset_mode == AutoresetMode.SAME_STEP
        use_all_cores()
        enable_compilation_cache()
        self._env = HackMatrixEnv(
            observation=observation if observation in FEATURE_SIZE else "classic",
            max_episode_steps=max_episode_steps,
            auto_reset=self.autoreset_mode != AutoresetMode.DISABLED,
            reward=reward,
        )
        mesh = devices_for(num_envs)
        self._begin = on_devices(self._begin_games, mesh, SHARDED, SHARDED)
        self._play = on_devices(self._play_games, mesh, SHARDED, SHARDED, donate_argnums=0)
        self._replace = on_devices(_chosen, mesh, SHARDED, SHARDED)
        self._games: _Games | None = None
        self._masks: Masks = np.zeros((num_envs, NUM_ACTIONS), np.bool_)
        self._over = np.zeros(num_envs, np.bool_)

    def reset(
        self,
        *,
        seed: int | Sequence[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins all games, or those that `options["reset_mask"]` (bool[N]) chooses.

        Args:
            seed: game i is that of seed + i, the same as `gymnasium.make` plays with that seed; a
                sequence gives each its own. None for random games.
            options: only `reset_mask`.

        Raises:
            UserError: a seed is negative, or seeds or mask are not of the number of games.
        """
        begun, masks, observations = self._begin(self._streams(seed))
        chosen = (options or {}).get("reset_mask")
        if chosen is not None and self._games is not None:
            chosen = np.asarray(chosen, np.bool_)
            if chosen.shape != (self.num_envs,):
                raise UserError(f"reset_mask must be bool[{self.num_envs}], got {chosen.shape}")
            begun, masks = self._replace(chosen, (begun, masks), (self._games, self._masks))
            observations = self._observed(begun.record)
            self._over &= ~chosen
        else:
            self._over[:] = False
        self._games, self._masks = begun, np.array(masks)
        return self._arranged(np.array(observations)), {"action_mask": self._masks.copy()}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes an action in each game; see `gymnasium.vector.VectorEnv.step`.

        Raises:
            UserError: before the first reset, wrong actions, or, with autoreset disabled, a game
                that has ended.
        """
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
        self._games, told = self._play(self._games, actions.astype(np.int32))
        # Copies, as nobody may write to JAX's own memory.
        step = jax.tree.map(np.array, told._replace(final_observation=None))
        ended = step.terminated | step.truncated
        self._masks = step.mask
        infos: dict[str, Any] = {"action_mask": step.mask.copy(), **step.facts}
        if self._tells_final and ended.any():
            final = self._arranged(np.array(told.final_observation))
            infos |= {"final_obs": final, "_final_obs": ended}
        if self.autoreset_mode == AutoresetMode.DISABLED:
            self._over = ended.copy()
        observations = self._arranged(step.observation)
        return observations, step.reward, step.terminated, step.truncated, infos

    def action_masks(self) -> Masks:
        """bool[N, 28], the valid actions of each game. For sb3-contrib."""
        return self._masks.copy()

    def _streams(self, seed: int | Sequence[int] | None) -> NDArray[np.uint32]:
        if seed is None:
            return self.np_random.integers(EVALUATION_STREAM, size=self.num_envs, dtype=np.uint32)
        seeds = np.asarray(seed, dtype=object)
        if not seeds.shape:
            first = int(seeds[()])
            if first >= 0:
                self._np_random, self._np_random_seed = np_random(first)
            seeds = first + np.arange(self.num_envs, dtype=object)
        if seeds.shape != (self.num_envs,) or min(seeds) < 0:
            raise UserError(f"seed must be one number or {self.num_envs}, each at least 0")
        return (seeds % EVALUATION_STREAM).astype(np.uint32)

    def _arranged(self, observations: Any) -> Any:
        return split(observations) if self._layout == "dict" else observations

    # --- traced ----------------------------------------------------------------------------------

    def _observed(self, records: Array) -> Array:
        return records if self._layout == "compact" else jax.vmap(self._env.features)(records)

    def _begin_games(self, streams: Array) -> tuple[_Games, Array, Array]:
        zero = jnp.zeros_like(streams)
        records, state = jax.vmap(self._env.reset_game)(streams, zero)
        games = _Games(state, records, jnp.zeros(streams.shape, bool))
        return games, jax.vmap(self._env.action_mask)(state), self._observed(records)

    def _play_games(self, games: _Games, actions: Array) -> tuple[_Games, _Step]:
        records, state, reward, terminated, truncated, info = jax.vmap(
            self._env.step, in_axes=(None, 0, 0)
        )(None, games.state, actions)
        final = info.pop("final_observation")
        del info["episode_done"]
        shown, waiting = records, games.waiting
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            state, records = _chosen(waiting, (games.state, games.record), (state, records))
            info, (reward, terminated, truncated) = _chosen(
                waiting,
                jax.tree.map(jnp.zeros_like, (info, (reward, terminated, truncated))),
                (info, (reward, terminated, truncated)),
            )
            shown = _chosen(terminated | truncated, final, records)
            waiting = terminated | truncated
        step = _Step(
            observation=self._observed(shown),
            final_observation=self._observed(final) if self._tells_final else shown,
            mask=jax.vmap(self._env.action_mask)(state),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            facts=info,
        )
        return _Games(state, records, waiting), step


def _chosen(chosen: Array, these: Any, others: Any) -> Any:
    """For each game the values of `these` where it is chosen, else of `others`."""

    def choose(this: Array, other: Array) -> Array:
        return jnp.where(chosen.reshape(-1, *[1] * (this.ndim - 1)), this, other)

    return jax.tree.map(choose, these, others)
