"""One game as an environment of Gymnasium."""

import operator
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.core.streams import below
from hackmatrix.game.drawing import draw, in_words
from hackmatrix.game.engine.game import GameOverError
from hackmatrix.game.engine.state import Player, State
from hackmatrix.game.engine.training_reward import progress
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.chance import EVALUATION_STREAM, MAX_WORD
from hackmatrix.game.rules.training_reward import REWARDS
from hackmatrix.integrations.gymnasium.backends import Mask, StepResult, make_backend
from hackmatrix.integrations.gymnasium.observation_spaces import arrange_record, space_of
from hackmatrix.integrations.process.client import START_TIMEOUT, TIMEOUT
from hackmatrix.ui.session.descriptions import PROGRAM_KEYS

PICTURES = ("ansi", "rgb_array", "svg")  # those that `render` returns
_CLEAR = "\x1b[H\x1b[J"  # of a terminal
_ARROWS = (0x40000052, 0x40000051, 0x40000050, 0x4000004F)  # pygame's: up, down, left, right


def stream_of(seed: int) -> int:
    """The stream of a seed, never one of evaluations.

    Args:
        seed: at least 0. Below 2**31 it is the stream itself; of a larger one NumPy's
            `SeedSequence`, from which Gymnasium's generators start, makes the stream.
    """
    if seed < EVALUATION_STREAM:
        return seed
    return int(np.random.SeedSequence(seed).generate_state(1)[0]) % EVALUATION_STREAM


def check_render_mode(mode: str | None, modes: Sequence[str]) -> None:
    """Raises `UserError` if a mode is not one of these, or Pillow is missing."""
    if mode is not None and mode not in modes:
        raise UserError(f"render_mode must be one of {', '.join(modes)}, got {mode!r}")
    if mode == "rgb_array":
        need("PIL")


def picture(state: State, mode: str | None) -> Any:
    """Text ("ansi", "svg") or uint8[H, W, 3] ("rgb_array"); None in other modes."""
    if mode == "rgb_array":
        from hackmatrix.game.drawing.pixels import pixels

        return pixels(state)
    if mode == "svg":
        return draw(state)
    return in_words(state) if mode == "ansi" else None


class GameEnv(gymnasium.Env[Any, Any]):
    """HackMatrix for Gymnasium: `gymnasium.make("HackMatrix-v1")`.

    Actions: 28, `rules.actions.ACTION_NAMES`; an invalid one ends the game. The valid ones are in
    `info["action_mask"]`, bool[28], and `action_masks()` returns them; after the end of the game,
    where no action counts, all are True, so that a masked policy always finds one. A seed below
    2**31 is the game's stream, so the same seed is the same game in every part of this project;
    see `stream_of` for larger ones.

    Info of a step: `invalid_action`, `stage_complete` and `death` are True or not there;
    `reward_breakdown` has 14 parts, which with the step penalty of -0.01 sum to the reward;
    `episode_stats` is there when the game ends. With another reward than the game's own,
    `game_reward` is its own, and `episode_stats` has the sum, `game_return`.
    """

    metadata = {  # noqa: RUF012 - Gymnasium's name and kind
        "render_modes": ["human", *PICTURES],
        "render_fps": 4,
    }

    def __init__(
        self,
        observation: str = "dict",
        backend: str = "python",
        game_binary: str | None = None,
        game_flags: Sequence[str] = (),
        render_mode: str | None = None,
        reward: str = "game",
        game_timeout: float = TIMEOUT,
        game_start_timeout: float = START_TIMEOUT,
    ) -> None:
        """Makes the environment.

        Args:
            observation: layout of the observations, see `space_of`.
            backend: who plays: "python" (the engine in this process), "process" or "jax".
            game_binary: path of a game process's binary, for backend "process" alone; None for
                that of `HACKMATRIX_BINARY`, or else ours.
            game_flags: of that process, such as `--info`.
            render_mode: "human" and "ansi" are text, to the terminal and returned; "rgb_array" and
                "svg" return a picture.
            reward: "game", or "progress", with which agents learn
                (`environments/hackmatrix/training_reward.py`)
                better.
            game_timeout: seconds that an answer of the game process may take.
            game_start_timeout: seconds that its first answer may take.

        Raises:
            UserError: one of these is unknown, or does not go with another.
        """
        check_render_mode(render_mode, self.metadata["render_modes"])
        if reward not in REWARDS:
            raise UserError(f"reward must be one of {', '.join(REWARDS)}, got {reward!r}")
        self.observation_space = space_of(observation)
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        self.render_mode = render_mode
        self._layout = observation
        self._backend = make_backend(
            backend, game_binary, game_flags, game_timeout, game_start_timeout
        )
        if observation not in self._backend.layouts:
            known = ", ".join(self._backend.layouts)
            raise UserError(f"backend {backend} gives observations {known}, not {observation}")
        self._mask: Mask = np.zeros(NUM_ACTIONS, np.bool_)
        self._running = False
        self._stats = _Stats()
        self._is_progress = reward == "progress"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts a game; see `gymnasium.Env.reset`.

        Args:
            seed: see `stream_of`; None for a random stream.
            options: only `episode`, the number of the game in its stream; 0 unless given.

        Raises:
            UserError: there is another option, or `episode` is not 0..2**32 - 1.
        """
        if unknown := [str(name) for name in options or {} if name != "episode"]:
            raise UserError(f"reset has the option episode alone, got {', '.join(unknown)}")
        episode = (options or {}).get("episode", 0)
        if not isinstance(episode, int | np.integer) or not 0 <= episode <= MAX_WORD:
            raise UserError(f"episode must be a number, 0..{MAX_WORD}, got {episode!r:.60}")
        super().reset(seed=seed)
        if seed is None:
            stream = int(self.np_random.integers(EVALUATION_STREAM))
        else:
            stream = stream_of(seed)
        self._backend.reset(stream, int(episode))
        self._running = True
        self._mask = self._backend.mask()
        self._stats = _Stats()
        self._show()
        return self._observation(), {"action_mask": self._mask.copy()}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes an action; see `gymnasium.Env.step`. It never truncates.

        Raises:
            GameOverError: there is no game that has not ended.
            UserError: the action is not an integer, 0..27.
        """
        if not self._running:
            raise GameOverError("there is no running game: call reset first")
        action_index = _action_index(action)
        before = replace(self.state().player) if self._is_progress else None
        result = self._backend.step(action_index)
        self._running = not result.done
        self._mask = self._backend.mask() if self._running else np.ones_like(self._mask)
        self._stats.add(action_index, result)
        reward = result.reward
        if before is not None:
            result.info["game_reward"] = reward
            reward = self._progress(before, result)
        observation = self._observation()
        result.info["action_mask"] = self._mask.copy()
        if result.done:
            result.info["episode_stats"] = self.episode_stats()
        self._show()
        return observation, reward, result.done, False, result.info

    def action_masks(self) -> Mask:
        """bool[28], the valid actions; all after the end of the game. For sb3-contrib."""
        return self._mask.copy()

    def get_valid_actions(self) -> list[int]:
        """The valid actions, ascending; none after the end of the game."""
        return np.flatnonzero(self._mask).tolist() if self._running else []

    def episode_stats(self) -> dict[str, Any]:
        """Sums over the steps of the game so far: `info["episode_stats"]` at its end."""
        info = self._stats.as_info(self.state().stage)
        return info | {"game_return": round(self._stats.reward, 3)} if self._is_progress else info

    def state(self) -> State:
        """The game, in the Python engine; of a game process what the player sees."""
        return self._backend.state()

    def render(self) -> Any:
        """The game in the mode that the environment was made with."""
        return picture(self.state(), self.render_mode)

    def get_keys_to_action(self) -> dict[tuple[str | int, ...], int]:
        """The keys of `gymnasium.utils.play`: arrows, S for the siphon, the page's for programs."""
        keys: tuple[str | int, ...] = (*_ARROWS, "s", *PROGRAM_KEYS.values())
        return {(key,): action for action, key in enumerate(keys)}

    def close(self) -> None:
        """Ends the game process, if there is one."""
        self._running = False
        self._backend.close()

    def _observation(self) -> Any:
        return arrange_record(self._backend.record(), self._layout)

    def _progress(self, before: Player, result: StepResult) -> float:
        completed, died = (bool(result.info.get(flag)) for flag in ("stage_complete", "death"))
        won = result.done and completed
        return progress(before, self.state().player, completed=completed, won=won, died=died)

    def _show(self) -> None:
        if self.render_mode == "human":
            screen = below(sys.stdout)
            screen.write(f"{_CLEAR}{in_words(self.state())}")
            screen.flush()


def _action_index(action: Any) -> int:
    """An action as a number: of any integer, also a NumPy or torch scalar."""
    try:
        index = operator.index(action)
    except TypeError:
        index = -1
    if not 0 <= index < NUM_ACTIONS:
        got = " ".join(repr(action).split())
        raise UserError(f"an action is one integer, 0..{NUM_ACTIONS - 1}, got {got:.60}")
    return index


class _Stats:
    """Sums of an episode."""

    def __init__(self) -> None:
        self.parts: Counter[str] = Counter()
        self.actions: Counter[str] = Counter()
        self.reward = 0.0

    def add(self, action: int, result: StepResult) -> None:
        """Adds a step."""
        kind = "program" if action >= FIRST_PROGRAM else "siphon" if action == SIPHON else "move"
        self.actions[kind] += 1
        self.reward += result.reward
        for name, points in result.info["reward_breakdown"].items():
            self.parts[name] += points

    def as_info(self, stage: int) -> dict[str, Any]:
        """The keys of `info["episode_stats"]`."""
        return {
            "reward_breakdown": {name: round(points, 3) for name, points in self.parts.items()},
            "programs_used": self.actions["program"],
            "highest_stage": stage,
            "action_counts": {kind: count for kind, count in self.actions.items() if count},
            "steps": self.actions.total(),
        }
