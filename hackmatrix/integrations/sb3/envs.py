"""The game as Stable-Baselines3 trains on it: single games in processes, or many in JAX."""

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

from hackmatrix.core.errors import UserError
from hackmatrix.game.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.game.rules.rewards import REWARD_PARTS
from hackmatrix.integrations.gymnasium.game import GameEnv
from hackmatrix.integrations.process.answers import REWARD_NAMES
from hackmatrix.integrations.process.client import GameProcessError

Array = NDArray[Any]
_GRACE = 5.0  # seconds in which a game that is told to end does so


class StatsOfTruncated(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds `episode_stats` to the info of a truncated episode too, which the game can't know."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated and not terminated:
            info["episode_stats"] = self.get_wrapper_attr("episode_stats")()
        return observation, reward, terminated, truncated, info


def single(max_steps: int, **options: Any) -> gymnasium.Env[Any, Any]:
    """One game: limited in steps, with statistics of its episodes.

    Args:
        max_steps: actions after which it is truncated.
        options: of `GameEnv`.
    """
    limited: gymnasium.Env[Any, Any] = gymnasium.wrappers.TimeLimit(GameEnv(**options), max_steps)
    return Monitor(StatsOfTruncated(limited))


def singles(num_envs: int, max_steps: int, **options: Any) -> VecEnv:
    """Several games at once, each in a process of its own; one alone in this process.

    Args:
        num_envs: how many games.
        max_steps: see `single`.
        options: of `GameEnv`.

    Raises:
        UserError: an option is wrong.
    """
    make = partial(single, max_steps, **options)
    if num_envs == 1:
        return DummyVecEnv([make])
    make().close()  # a wrong option is told here, once, and not by each process
    return GamesInProcesses([partial(_ErrorReporting, make)] * num_envs)


_ERROR = "game_process_error"  # key of an info


class _ErrorReporting(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A game in a process of its own; what ends it is told in an info, to be raised in the parent.

    The parent alone hears Ctrl+C, and ends its games when it has saved the model.
    """

    def __init__(self, make: Callable[[], gymnasium.Env[Any, Any]]) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        super().__init__(make())

    def reset(self, **how: Any) -> tuple[Any, dict[str, Any]]:
        """See `gymnasium.Env.reset`."""
        try:
            return self.env.reset(**how)
        except (GameProcessError, UserError) as error:
            return self.observation_space.sample(), {_ERROR: error}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """See `gymnasium.Env.step`."""
        try:
            return self.env.step(action)
        except (GameProcessError, UserError) as error:
            return self.observation_space.sample(), 0.0, False, False, {_ERROR: error}


class GamesInProcesses(SubprocVecEnv):
    """Games in processes of their own, which are ended whatever state they are in."""

    closed: bool

    def __init__(self, makes: list[Callable[[], gymnasium.Env[Any, Any]]]) -> None:
        # Torch is loaded once, in the process from which the others are forked.
        multiprocessing.set_forkserver_preload([SubprocVecEnv.__module__, Monitor.__module__])
        super().__init__(makes)

    def reset(self) -> Any:
        """Begins all games.

        Raises:
            GameProcessError: one of them can't.
            UserError: the binary can't be started.
        """
        with _as_game_process_error():
            observations = super().reset()
        self._raise_errors(self.reset_infos)
        return observations

    def step(self, actions: Array) -> Any:
        """Takes an action in each game.

        Raises:
            GameProcessError: one of them has ended.
        """
        with _as_game_process_error():
            step = super().step(actions)
        self._raise_errors([*step[3], *self.reset_infos])
        return step

    def _raise_errors(self, infos: Sequence[dict[str, Any]]) -> None:
        for error in (info[_ERROR] for info in infos if _ERROR in info):
            raise error

    def close(self) -> None:
        """Ends the processes; those in the middle of a step at once."""
        if self.closed:
            return
        self.closed = True
        if not self.waiting:
            for remote in self.remotes:
                with contextlib.suppress(OSError):
                    remote.send(("close", None))
        for process in self.processes:
            process.join(0 if self.waiting else _GRACE)
            process.kill()
            process.join()
        for remote in self.remotes:
            remote.close()


@contextlib.contextmanager
def _as_game_process_error() -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        raise GameProcessError("a process that plays a game has ended") from error


class JaxVecEnv(VecEnv):
    """Many games on the native or the JAX engine, for algorithms of Stable-Baselines3.

    Episodes have the infos that `single` gives: `episode`, `episode_stats`, the last observation
    and whether it was truncated. Other steps have none.
    """

    def __init__(
        self, num_envs: int, max_steps: int, observation: str = "dict", reward: str = "game"
    ) -> None:
        """Makes the games; see `GameVectorEnv`."""
        from hackmatrix.integrations.gymnasium.vector import GameVectorEnv

        self._games = GameVectorEnv(
            num_envs,
            observation,
            max_episode_steps=max_steps,
            autoreset_mode=AutoresetMode.SAME_STEP,
            reward=reward,
        )
        self._returns = np.zeros(num_envs)
        self._actions: Array = np.zeros(num_envs, np.int64)
        self._parts = np.zeros((num_envs, len(REWARD_PARTS)))
        self._kinds = np.zeros((num_envs, 3), np.int64)  # moves, siphons, programs
        self.render_mode = None
        super().__init__(
            num_envs, self._games.single_observation_space, self._games.single_action_space
        )

    def reset(self) -> Any:
        """Begins all games."""
        seeds = self._seeds
        observations, _ = self._games.reset(seed=None if seeds[0] is None else seeds)
        self._reset_seeds()
        for sums in (self._parts, self._kinds, self._returns):
            sums[:] = 0
        return observations

    def step_async(self, actions: Array) -> None:
        """Keeps the actions."""
        self._actions = np.asarray(actions)

    def step_wait(self) -> Any:
        """Takes the actions that were kept."""
        observations, rewards, terminated, truncated, infos_of_all = self._games.step(self._actions)
        kinds = np.digitize(self._actions, (SIPHON, FIRST_PROGRAM))
        self._kinds[np.arange(self.num_envs), kinds] += 1
        self._parts += infos_of_all["reward_parts"]
        self._returns += rewards
        dones = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones).tolist():
            infos[i] = self._info_of_ended(i, infos_of_all, bool(truncated[i] & ~terminated[i]))
        for sums in (self._parts, self._kinds, self._returns):
            sums[dones] = 0
        return observations, rewards, dones, infos

    def _info_of_ended(
        self, i: int, infos_of_all: dict[str, Any], truncated: bool
    ) -> dict[str, Any]:
        parts = dict(zip(REWARD_PARTS, self._parts[i].round(3).tolist(), strict=True))
        kinds = dict(zip(("move", "siphon", "program"), self._kinds[i].tolist(), strict=True))
        length, last = int(infos_of_all["episode_length"][i]), infos_of_all["final_obs"]
        return {
            "episode": {"r": float(self._returns[i]), "l": length},
            "terminal_observation": (
                {name: x[i] for name, x in last.items()} if isinstance(last, dict) else last[i]
            ),
            "TimeLimit.truncated": truncated,
            "episode_stats": {
                "reward_breakdown": {
                    name: parts[part] for part, name in REWARD_NAMES.items() if part in parts
                },
                "programs_used": kinds["program"],
                "highest_stage": int(infos_of_all["stage"][i]),
                "action_counts": {kind: count for kind, count in kinds.items() if count},
                "steps": length,
                "game_return": float(infos_of_all["episode_return"][i]),
            },
        }

    def action_masks(self) -> Array:
        """bool[N, 28], the valid actions."""
        return self._games.action_masks()

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any
    ) -> list[Any]:
        """Only `action_masks`, which sb3-contrib asks for."""
        if method_name != "action_masks":
            raise AttributeError(f"the JAX engine's games have no method {method_name}")
        masks = self.action_masks()
        return [masks[i] for i in self._get_indices(indices)]

    def has_attr(self, attr_name: str) -> bool:
        """Whether games have an attribute."""
        return attr_name in ("action_masks", "render_mode")

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of each game."""
        if attr_name not in ("render_mode", "spec"):
            raise AttributeError(f"the JAX engine's games have no attribute {attr_name}")
        return [None for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Games have no attributes to set."""
        raise AttributeError(f"the JAX engine's games have no attribute {attr_name}")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Episodes are monitored here, so no wrapper is needed."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def close(self) -> None:
        """Nothing is open."""

    def get_images(self) -> Sequence[Any]:
        """There are no pictures of many games."""
        return [None] * self.num_envs
