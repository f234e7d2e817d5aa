"""Who plays the game of an environment: the Python engine, a game process, or the JAX engine."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.errors import UserError
from hackmatrix.core.extras import need
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.state import Ending, State
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.rewards import REWARD_PARTS, UNIT
from hackmatrix.integrations.gymnasium.observation_spaces import LAYOUTS
from hackmatrix.integrations.gymnasium.process_state import state_from
from hackmatrix.integrations.process.answers import REWARD_NAMES
from hackmatrix.integrations.process.client import GameProcess

Mask = NDArray[np.bool_]


class StepResult(NamedTuple):
    """The results of a step."""

    reward: float
    done: bool
    info: dict[str, Any]  # the flags that apply, and `reward_breakdown`


class Backend(Protocol):
    """One game. After `close` it may be reset again."""

    layouts: tuple[str, ...]  # of observations that it can give

    def reset(self, stream: int, episode: int = 0) -> None:
        """Starts a game of a stream."""

    def step(self, action: int) -> StepResult:
        """Takes an action in a game that has not ended."""

    def mask(self) -> Mask:
        """bool[28], the valid actions."""

    def record(self) -> bytes:
        """The compact record of what the player sees."""

    def state(self) -> State:
        """The game for drawing, as far as the player sees it."""

    def close(self) -> None:
        """Ends the game."""


def breakdown(parts: dict[str, float]) -> dict[str, float]:
    """The reward parts under the names of the process: 14, as the original has no step penalty."""
    return {name: parts[part] for part, name in REWARD_NAMES.items() if part != "step_penalty"}


def flags_of(ending: Ending | None, *, stage_complete: bool) -> dict[str, Any]:
    """The flags of an info that apply."""
    return {
        **({"invalid_action": True} if ending == Ending.INVALID_ACTION else {}),
        **({"stage_complete": True} if stage_complete else {}),
        **({"death": True} if ending == Ending.DIED else {}),
    }


def mask_of(valid: list[int]) -> Mask:
    """bool[28] of a list of valid actions."""
    mask = np.zeros(NUM_ACTIONS, np.bool_)
    mask[valid] = True
    return mask


class PythonBackend:
    """The Python engine in this process."""

    layouts: tuple[str, ...] = LAYOUTS

    def __init__(self) -> None:
        self._game = Game.new(0)

    def reset(self, stream: int, episode: int = 0) -> None:
        """See `Backend`."""
        self._game = Game.new(stream, episode)

    def step(self, action: int) -> StepResult:
        """See `Backend`."""
        outcome = self._game.step(action)
        parts = {part: units * UNIT for part, units in outcome.parts.items()}
        flags = flags_of(outcome.ending, stage_complete=outcome.stage_completed)
        return StepResult(
            outcome.reward, outcome.done, {**flags, "reward_breakdown": breakdown(parts)}
        )

    def mask(self) -> Mask:
        """See `Backend`."""
        return mask_of(self._game.valid_actions())

    def record(self) -> bytes:
        """See `Backend`."""
        return self._game.observation()

    def state(self) -> State:
        """See `Backend`."""
        return self._game.state

    def close(self) -> None:
        """See `Backend`."""


class ProcessBackend:
    """A game process: ours, or the original's binary, which takes no seeds."""

    layouts: tuple[str, ...] = ("dict", "classic")

    def __init__(self, process: GameProcess) -> None:
        self._process = process
        self._observation: dict[str, Any] = {}  # the last observation
        self._done = False

    def reset(self, stream: int, episode: int = 0) -> None:
        """See `Backend`."""
        if episode:
            raise UserError(f"backend process starts episode 0 of a stream alone, not {episode}")
        self._observation = self._process.ask("reset", seed=stream)["observation"]
        self._done = False

    def step(self, action: int) -> StepResult:
        """See `Backend`."""
        answer = self._process.ask("step", actionIndex=action)
        self._observation, self._done = answer["observation"], bool(answer["done"])
        info = answer.get("info", {})
        info.setdefault("reward_breakdown", {})
        return StepResult(float(answer["reward"]), self._done, info)

    def mask(self) -> Mask:
        """See `Backend`."""
        if self._done:
            return mask_of([])
        return mask_of(self._process.ask("getValidActions")["validActions"])

    def record(self) -> bytes:
        """See `Backend`."""
        return observe(self.state())

    def state(self) -> State:
        """See `Backend`."""
        return state_from(self._observation)

    def close(self) -> None:
        """See `Backend`."""
        self._process.close()

    def __reduce__(self) -> Any:
        raise UserError("a game in another process can't be pickled or copied: make another one")


@with_jax_defaults
class JaxBackend:
    """The JAX engine, for one game; many games are faster in `gymnasium.make_vec`."""

    layouts: tuple[str, ...] = LAYOUTS

    def __init__(self) -> None:
        self._state: Any = None
        self._observation: Any = None
        self._done = False
        self._make_programs()

    def _make_programs(self) -> None:
        need("jax")
        import jax

        from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
        from hackmatrix.environments.hackmatrix import HackMatrixEnv

        enable_compilation_cache()
        env = HackMatrixEnv(auto_reset=False)
        self._reset = jax.jit(env.reset_game)
        self._step = jax.jit(env.step)
        self._mask = jax.jit(env.action_mask)

    def __getstate__(self) -> Any:
        return self._state, self._observation, self._done  # programs can't be pickled

    def __setstate__(self, state: Any) -> None:
        self._state, self._observation, self._done = state
        self._make_programs()

    def reset(self, stream: int, episode: int = 0) -> None:
        """See `Backend`."""
        self._observation, self._state = self._reset(np.uint32(stream), np.uint32(episode))
        self._done = False

    def step(self, action: int) -> StepResult:
        """See `Backend`."""
        self._observation, self._state, reward, done, _, info = self._step(
            None, self._state, np.int32(action)
        )
        self._done = bool(done)
        numbers = np.asarray(info["reward_parts"], np.float64).round(3).tolist()
        parts = dict(zip(REWARD_PARTS, numbers, strict=True))
        ending = self.state().over if self._done else None
        completed = parts["stage_completion"] > 0
        flags = flags_of(ending, stage_complete=completed)
        return StepResult(
            round(float(reward), 3), self._done, {**flags, "reward_breakdown": breakdown(parts)}
        )

    def mask(self) -> Mask:
        """See `Backend`."""
        return mask_of([]) if self._done else np.array(self._mask(self._state))

    def record(self) -> bytes:
        """See `Backend`."""
        return np.asarray(self._observation).tobytes()

    def state(self) -> State:
        """See `Backend`."""
        state: State = self._state.to_engine()
        return state

    def close(self) -> None:
        """See `Backend`."""


BACKENDS = ("python", "process", "jax")


def make_backend(
    name: str, binary: str | None, flags: Sequence[str], timeout: float, start_timeout: float
) -> Backend:
    """Makes a backend.

    Args:
        name: one of `BACKENDS`.
        binary: the game process's program, see `bridge.client`; for "process" alone.
        flags: given to that program, which then shows what it says on stderr.
        timeout: seconds that one of its answers may take.
        start_timeout: seconds that its first answer may take.

    Raises:
        UserError: there is no such backend, no such binary, or a timeout is not above 0.
    """
    if name not in BACKENDS:
        raise UserError(f"backend must be one of {', '.join(BACKENDS)}, got {name!r}")
    if binary is not None and name != "process":
        raise UserError(f"game_binary goes with backend process, not with {name}")
    if name == "process":
        process = GameProcess(
            binary, flags=flags, timeout=timeout, start_timeout=start_timeout, echo=bool(flags)
        )
        return ProcessBackend(process)
    return PythonBackend() if name == "python" else JaxBackend()
