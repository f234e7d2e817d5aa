"""Vector operations of the kernels of Pallas, of which the compiler estimates no cycles.

A value of a block of 1,024 games is a register, and what is done to it one vector operation.
"""

import math
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from hackmatrix.cloud.targets import loops
from hackmatrix.environments.hackmatrix.pallas_games import one_game
from hackmatrix.game.foresight import kernel as tactical
from hackmatrix.game.foresight.jax_layout import tactical_words
from hackmatrix.game.jaxgame import kernel, undo
from hackmatrix.game.jaxgame.mosaic import BLOCK, GAMES_OF_A_BLOCK
from hackmatrix.game.rules.observation import RECORD_SIZE

_FREE = {
    *("broadcast_in_dim", "reshape", "squeeze", "slice", "concatenate", "stack", "expand_dims"),
    *("convert_element_type", "iota", "bitcast_convert_type", "platform_index"),
}
# Vector operations of those that take several: shifts are guarded, maxima go across lanes.
_DEAR = {"shift_left": 3, "shift_right_logical": 3, "reduce_max": 20, "reduce_or": 20, "gather": 4}
_AN_ARRAY = 12  # operations for a block of an array that gets in or out of a kernel


@cache
def operations(product: int) -> dict[str, float]:
    """Vector operations of a block of 1,024 games, for each kernel by the name of its scope.

    Args:
        product: what a product of two words takes.
    """

    def block(dtype: Any, *before: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*before, *BLOCK), dtype)

    game = one_game()
    games = jax.tree.map(lambda x: block(x.dtype), undo.without_rows(game))
    position = block(jnp.uint32, game.saved.rows.shape[-1])
    record, word = block(jnp.uint32, RECORD_SIZE // 4), block(jnp.int32)
    rules = {
        kernel.SCOPE: jax.make_jaxpr(partial(kernel.play, restarts=True))(
            games, word, position, word
        ),
        tactical.SCOPE: jax.make_jaxpr(tactical_words)(record),
    }
    return {name: _of(rule, product) for name, rule in rules.items()}


def _of(rule: ClosedJaxpr, product: int) -> float:
    arrays = sum(_registers(x.aval) for x in (*rule.jaxpr.invars, *rule.jaxpr.outvars))
    return _AN_ARRAY * arrays + _counted(rule.jaxpr, product)


def _counted(jaxpr: Jaxpr, product: int) -> float:
    return sum(_operations(eqn, product) for eqn in jaxpr.eqns)


def _operations(eqn: JaxprEqn, product: int) -> float:
    name, inside = eqn.primitive.name, eqn.params
    if name in _FREE:
        return 0.0
    if name == "jit":
        return _counted(inside["jaxpr"].jaxpr, product)
    if name == "scan":
        return float(inside["length"]) * _counted(inside["jaxpr"].jaxpr, product)
    if name == "while":
        rounds = loops.ROUNDS[str(eqn.source_info.name_stack).rpartition("/")[2]]
        body, condition = inside["body_jaxpr"], inside["cond_jaxpr"]
        end = _counted(condition.jaxpr, product)
        return rounds * _counted(body.jaxpr, product) + (rounds + 1) * end
    if name == "cond":
        sides = [_counted(side.jaxpr, product) for side in inside["branches"]]
        by_platform = inside.get("branches_platforms") is not None
        return sides[-1] if by_platform else max(sides)  # the last is that for accelerators
    registers = max(_registers(x.aval) for x in (*eqn.invars, *eqn.outvars))
    return registers * (product if name == "mul" else _DEAR.get(name, 1))


def _registers(aval: Any) -> int:
    """Registers that an array of a block takes; a number of the whole block takes none."""
    return math.prod(aval.shape) // GAMES_OF_A_BLOCK
