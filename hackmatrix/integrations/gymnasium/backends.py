"""Who plays the game of an environment: the Python engine, a game process, or the JAX engine."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.state import Cell, Ending, Enemy, Player, State, Transmission
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS
from hackmatrix.game.rules.board import SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.rewards import REWARD_PARTS, UNIT
from hackmatrix.integrations.gymnasium.observation_spaces import LAYOUTS
from hackmatrix.integrations.process.answers import REWARD_NAMES
from hackmatrix.integrations.process.client import GameProcess
from hackmatrix.integrations.process.set_state import PROGRAM_BY_NAME

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


# --- A state of the engine from what a game process answers: the part that the player sees --------


Json = dict[str, Any]


def state_from(observation: Json) -> State:
    """The state that an observation of the process shows; what it does not show is as at a start.

    It is good for observations in the layouts "dict" and "classic" and for drawing. Question blocks
    hold data, and transmissions are of viruses where their type is hidden.
    """
    cells = [cell for row in observation["cells"] for cell in row]
    exits = [index for index, cell in enumerate(cells) if cell["isExit"]]
    return State(
        dice=Dice(0, 0),
        exit=exits[0] if exits else 0,
        player=Player(
            observation["playerRow"] * SIZE + observation["playerCol"],
            hp=observation["playerHP"],
            credits=observation["credits"],
            energy=observation["energy"],
            siphons=observation["dataSiphons"],
            attack=observation["baseAttack"],
            score=observation["score"],
        ),
        cells=[_cell(cell) for cell in cells],
        enemies=[_enemy(i, cell["enemy"]) for i, cell in enumerate(cells) if "enemy" in cell],
        transmissions=[
            _transmission(i, cell["transmission"])
            for i, cell in enumerate(cells)
            if "transmission" in cell
        ],
        owned=[action - FIRST_PROGRAM for action in observation["ownedPrograms"]],
        stage=observation["stage"],
        turn=observation["turn"],
        show=observation["showActivated"],
        calm=observation["scheduledTasksDisabled"],
    )


def _cell(fields: Json) -> Cell:
    cell = Cell(
        credits=fields.get("credits", 0),
        energy=fields.get("energy", 0),
        center=fields["siphonCenter"],
    )
    if "block" in fields:
        _add_block(cell, fields["block"])
    elif fields["isExit"]:
        cell.content = Content.EXIT
    elif fields["isDataSiphon"]:
        cell.content = Content.SIPHON
    return cell


def _add_block(cell: Cell, block: Json) -> None:
    cell.siphoned = block["isSiphoned"]
    cell.spawn = block.get("transmissionSpawnCount", 0)
    cell.content = Content[block["blockType"].upper()]
    cell.holds_data = cell.content == Content.QUESTION
    if cell.content == Content.DATA:
        cell.points = block["points"]
    elif cell.content == Content.PROGRAM:
        index = block.get("programActionIndex")
        by_name = PROGRAM_BY_NAME.get(str(block.get("programType")).lower(), 0)
        cell.program = by_name if index is None else index - FIRST_PROGRAM


def _enemy(cell: int, fields: Json) -> Enemy:
    return Enemy(
        EnemyType[fields["type"].upper()],
        cell,
        fields["hp"],
        stunned=fields["isStunned"],
        from_siphon=fields["spawnedFromSiphon"],
    )


def _transmission(cell: int, fields: Json) -> Transmission:
    return Transmission(
        cell, fields["turnsUntilSpawn"], EnemyType[fields.get("enemyType", "virus").upper()]
    )
