"""Many games at once as a vector environment of Gymnasium, in the native engine or in JAX."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.game import native
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.game.rules.training_reward import REWARDS
from hackmatrix.integrations.gymnasium.batches import BatchSettings, GameBatch
from hackmatrix.integrations.gymnasium.game import PICTURES, check_render_mode, picture, stream_of
from hackmatrix.integrations.gymnasium.observation_spaces import space_of, split

Masks = NDArray[np.bool_]


@lru_cache(maxsize=16)
def _batch_of(settings: BatchSettings) -> GameBatch:
    """Plays the games; what JAX compiles for it is compiled once for all that are alike."""
    if native.available:
        from hackmatrix.integrations.gymnasium.native_batch import NativeBatch

        return NativeBatch(settings)
    need("jax")
    from hackmatrix.integrations.gymnasium.jax_batch import JaxBatch

    return JaxBatch(settings)


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
        "render_modes": list(PICTURES),
    }

    def __init__(
        self,
        num_envs: int = 1,
        observation: str = "dict",
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        reward: str = "game",
        render_mode: str | None = None,
    ) -> None:
        """Makes the environment; the first reset and step compile or load what they need.

        Args:
            num_envs: number of games. Divisible by the number of cores, they use all cores.
            observation: layout, see `space_of`; "compact" is the fastest.
            max_episode_steps: actions after which a game is truncated; None for no limit.
            autoreset_mode: `NEXT_STEP`: the step that ends a game returns its last observation, and
                the step after it begins the next game, whatever the action, with reward 0.
                `SAME_STEP`: the step that ends a game returns the first observation of the next
                one. `DISABLED`: `reset` with `options={"reset_mask": bool[N]}` begins new games.
            reward: "game", or "progress", with which agents learn
                (`environments/hackmatrix/training_reward.py`)
                better.
            render_mode: "ansi", "svg" or "rgb_array": `render` returns a picture of each game.

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
        if max_episode_steps is not None and max_episode_steps < 1:
            raise UserError(f"max_episode_steps must be at least 1, got {max_episode_steps}")
        if reward not in REWARDS:
            raise UserError(f"reward must be one of {', '.join(REWARDS)}, got {reward!r}")
        check_render_mode(render_mode, PICTURES)
        self.render_mode = render_mode
        self.single_observation_space = space_of(observation)
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._layout = observation
        self._settings = BatchSettings(
            num_envs, observation, max_episode_steps, self.autoreset_mode, reward
        )
        self._batch = _batch_of(self._settings)
        self._games: Any = None
        self._masks: Masks = np.zeros((num_envs, NUM_ACTIONS), np.bool_)
        self._over = np.zeros(num_envs, np.bool_)
        self._views = [_OneGame(self, number) for number in range(num_envs)]

    def __getstate__(self) -> dict[str, Any]:
        games = None if self._games is None else self._batch.snapshot(self._games)
        return self.__dict__ | {"_games": games, "_batch": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._batch = _batch_of(self._settings)

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
        begun = self._batch.begin(self._streams(seed))
        chosen = (options or {}).get("reset_mask")
        if chosen is not None and self._games is not None:
            chosen = np.asarray(chosen, np.bool_)
            if chosen.shape != (self.num_envs,):
                raise UserError(f"reset_mask must be bool[{self.num_envs}], got {chosen.shape}")
            begun = self._batch.replace(chosen, begun, self._games, self._masks)
            self._over &= ~chosen
        else:
            self._over[:] = False
        self._games, self._masks = begun.games, begun.mask
        return self._arrange(begun.observation), {"action_mask": self._masks.copy()}

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
        self._games, step = self._batch.play(self._games, actions.astype(np.int32))
        ended = step.terminated | step.truncated
        self._masks = step.mask
        infos: dict[str, Any] = {"action_mask": step.mask.copy(), **step.facts}
        if step.final_observation is not None:
            last = self._arrange(step.final_observation)
            final = np.full(self.num_envs, None, object)
            for i in np.flatnonzero(ended):
                final[i] = {k: x[i] for k, x in last.items()} if isinstance(last, dict) else last[i]
            facts = step.facts | {f"_{name}": ended for name in step.facts}
            infos |= {"final_obs": final, "_final_obs": ended}
            infos |= {"final_info": facts, "_final_info": ended}
        if self.autoreset_mode == AutoresetMode.DISABLED:
            self._over = ended.copy()
        observations = self._arrange(step.observation)
        return observations, step.reward, step.terminated, step.truncated, infos

    def render(self) -> tuple[Any, ...] | None:
        """A picture of each game, in the mode that the environment was made with; None without one.

        Raises:
            UserError: before the first reset.
        """
        if self.render_mode is None:
            return None
        if self._games is None:
            raise UserError("there are no games yet: call reset first")
        states = (self._batch.state(self._games, number) for number in range(self.num_envs))
        return tuple(picture(state, self.render_mode) for state in states)

    def action_masks(self) -> Masks:
        """bool[N, 28], the `action_mask` of the last infos. For sb3-contrib."""
        return self._masks.copy()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The results of a method of each game, or the values of an attribute. See `_OneGame`.

        Raises:
            AttributeError: games have nothing of that name.
        """
        found = [getattr(game, name) for game in self._views]
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
        for game, value in zip(self._views, each, strict=True):
            setattr(game, name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Forgets the games."""
        self._games = None

    def _check_open(self, what: str) -> None:
        if self.closed:
            raise ClosedEnvironmentError(f"{what}: the environment is closed, make another one")

    def _streams(self, seed: int | Sequence[int | None] | None) -> NDArray[np.uint32]:
        seed_array = np.asarray(seed, dtype=object)
        seeds = seed_array.ravel().tolist()
        numbers = [each for each in seeds if each is not None]
        wrong = [each for each in numbers if not isinstance(each, int | np.integer) or each < 0]
        if not seed_array.shape and seed is not None and not wrong:
            self._np_random, self._np_random_seed = np_random(int(numbers[0]))
            seeds = [int(numbers[0]) + i for i in range(self.num_envs)]
        elif seed is None:
            seeds *= self.num_envs
        if wrong or len(seeds) != self.num_envs:
            raise UserError(f"seed must be one number or {self.num_envs}, each at least 0 or None")
        drawn = iter(self.np_random.integers(EVALUATION_STREAM, size=seeds.count(None)))
        streams = [next(drawn) if each is None else stream_of(int(each)) for each in seeds]
        return np.array(streams, np.uint32)

    def _arrange(self, observations: Any) -> Any:
        return split(observations) if self._layout == "dict" else observations


class _OneGame:
    """One of the games, for `call`, `get_attr` and `set_attr`."""

    def __init__(self, games: GameVectorEnv, index: int) -> None:
        """Shows game `index` of `games`."""
        self.observation_space = games.single_observation_space
        self.action_space = games.single_action_space
        self.metadata = games.metadata
        self.render_mode = games.render_mode
        self._games, self._index = games, index

    @property
    def spec(self) -> Any:
        """By which Gymnasium made the games."""
        return self._games.spec

    def action_masks(self) -> Masks:
        """bool[28], the valid actions; all after the end of the game."""
        return self._games._masks[self._index].copy()
