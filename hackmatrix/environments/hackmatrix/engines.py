"""The engines that can play the environment's games."""

import importlib
import warnings
from functools import cache
from typing import Any, Protocol

import jax

from hackmatrix.core.errors import UserError
from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.game import native
from hackmatrix.game.engine import state as engine
from hackmatrix.game.jaxgame.state import State

Array = jax.Array

ENGINES = ("auto", "native", "jax", "pallas")
LEFT_OUT = "was left out at the installation"
ANOTHER_JAX = f"was built for a later JAX than {jax.__version__}"


class Engine(Protocol):
    """An engine for batches of N games inside compiled programs."""

    NAME: str
    Game: type  # how it keeps games

    def new_games(self, stream: Array, episode: Array) -> tuple[Array, EnvState]:
        """Starts N games; returns observations and states."""

    def step(
        self,
        state: EnvState,
        action: Array,
        *,
        max_episode_steps: int | None,
        auto_reset: bool,
        progress: bool,
    ) -> tuple[Any, ...]:
        """Takes an action in each of N games; returns what `HackMatrixEnv.step` does."""

    def observe(self, games: Any) -> Array:
        """uint8[N, RECORD_SIZE]: the observations of N games."""

    def imagine(
        self, records: Array, remembered: Array, saved: Array, streams: Array, episodes: Array
    ) -> Any:
        """N games that look as these observations: `game/foresight/jax_imagination.py`."""

    def tactical_numbers(self, records: Array) -> Array:
        """int8[N, TACTICAL_SIZE]: the integers of the layout `tactical`, of observations."""

    def action_bits(self, game: Any) -> Array:
        """uint32: the valid actions of one game."""

    def one_game(self) -> Any:
        """The shapes and dtypes of a game."""

    def from_engine(self, state: engine.State) -> Any:
        """One game, from a state of the Python engine."""

    def without_saved(self, game: Any) -> Any:
        """The game without what UNDO restores, for code that only keeps it."""

    def with_saved(self, game: Any, of: Any) -> Any:
        """The game with what UNDO restores in another."""

    def stage(self, game: Any) -> Array:
        """int32, 1..8."""

    def programs_owned(self, game: Any) -> Array:
        """int32, 0..23."""

    def from_state(self, game: State) -> Any:
        """Games with any leading axes, from those of the JAX engine."""

    def to_state(self, game: Any) -> State:
        """The games as the JAX engine has them."""


@cache
def engine_of(name: str) -> Engine:
    """The engine of this name.

    "auto" is the native one on CPUs and NVIDIA's GPUs, if it is there; on TPUs the JAX engine as a
    kernel of Pallas, if that compiles; and else the JAX engine.

    Raises:
        UserError: the native engine was left out at the installation, was built for another JAX,
            does not play on this GPU, or JAX is on another accelerator.
    """
    backend = jax.default_backend()
    missing = _why_not_native(backend) if name in ("auto", "native") else None
    if name == "native" and missing:
        raise UserError(f"engine=native: it {missing}; see docs/native-engine.md")
    if name == "auto":
        name = "native" if not missing else _on_a_tpu() if backend == "tpu" else "jax"
        if missing and missing != LEFT_OUT and backend != "tpu":
            warnings.warn(f"the native engine {missing}; JAX's plays, more slowly", stacklevel=2)
    module: Any = importlib.import_module(f"hackmatrix.environments.hackmatrix.{name}_games")
    return module


def _why_not_native(backend: str) -> str | None:
    """Why the native engine can't play on a backend of JAX, where it can't."""
    if backend not in ("cpu", "gpu"):
        return f"plays on CPUs and NVIDIA's GPUs, and JAX is on {backend}"
    if not native.available:
        return LEFT_OUT
    from hackmatrix.game.native import _native

    if not hasattr(_native, "XLA_HANDLERS"):  # built without JAX's headers
        return LEFT_OUT
    try:
        importlib.import_module("hackmatrix.game.native.xla")
    except jax.errors.JaxRuntimeError:
        return ANOTHER_JAX
    if backend == "gpu":
        from hackmatrix.game.native import cuda

        try:
            cuda.register()
        except cuda.CudaError as error:
            return f"does not play on this GPU: {error}"
    return None


def _on_a_tpu() -> str:
    from hackmatrix.environments.hackmatrix import pallas_games

    if (reason := pallas_games.why_not()) is None:
        return pallas_games.NAME
    line = f"no kernel for this TPU ({reason:.200}); XLA compiles the games, which play more slowly"
    warnings.warn(line, stacklevel=3)
    return "jax"
