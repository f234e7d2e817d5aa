"""The environment's games in the JAX engine on TPUs, where a step is one kernel of Pallas.

The functions are those of `engines.Engine`. Games are kept as the JAX engine keeps them, and a
number of them that is not a multiple of 1,024 is played as it plays them.
"""

from typing import Any

import jax
import jax.numpy as jnp

from hackmatrix.environments.hackmatrix import jax_games
from hackmatrix.environments.hackmatrix.env_state import EnvState
from hackmatrix.environments.hackmatrix.jax_games import (
    Game,
    action_bits,
    from_engine,
    from_state,
    imagine,
    new_games,
    observe,
    one_game,
    programs_owned,
    stage,
    step_with,
    to_state,
    with_saved,
    without_saved,
)
from hackmatrix.game.foresight import kernel as foresight_kernel
from hackmatrix.game.jaxgame import batch, kernel
from hackmatrix.game.jaxgame.mosaic import GAMES_OF_A_BLOCK

Array = jax.Array

__all__ = [
    "Game",
    "action_bits",
    "from_engine",
    "from_state",
    "imagine",
    "new_games",
    "observe",
    "one_game",
    "programs_owned",
    "stage",
    "to_state",
    "with_saved",
    "without_saved",
]

NAME = "pallas"


def step(state: EnvState, action: Array, **settings: Any) -> tuple[Any, ...]:
    """Takes an action in each of N games; returns what `HackMatrixEnv.step` does."""
    play = batch.step if action.size % GAMES_OF_A_BLOCK else kernel.step
    return step_with(play, state, action, **settings)


def tactical_numbers(records: Array) -> Array:
    """int8[N, TACTICAL_SIZE]: the integers of the layout `tactical`, of observations."""
    if records.shape[0] % GAMES_OF_A_BLOCK:
        return jax_games.tactical_numbers(records)
    return foresight_kernel.tactical_numbers(records)


def why_not() -> str | None:
    """The first line of what a compiler says that does not take the kernel; None if it does."""
    games = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((GAMES_OF_A_BLOCK, *x.shape), x.dtype), one_game()
    )
    actions = jax.ShapeDtypeStruct((GAMES_OF_A_BLOCK,), jnp.int32)
    try:
        jax.jit(lambda games, actions: kernel.step(games, actions, None, True)).lower(
            games, actions
        ).compile()
    except Exception as error:  # whatever it is, games can be played without the kernel
        return next((line for line in str(error).splitlines() if line.strip()), repr(error))
    return None
