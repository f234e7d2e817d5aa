"""The network `player_centred`: sees the board from the player, and from where each step leads.

Its first layer is a sum of rows of weights, `row_tables.py`. Boards are mirrored so that the exit
lies in one corner and the logits of directions mirrored back, so mirrored games get mirrored
answers. The transposed board would be another symmetry, in which the programs ROW and COL change
places; it is not used.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.mlp import Dense, relu
from hackmatrix.agents.networks.network import Network
from hackmatrix.agents.networks.rows import (
    DEFINITION,
    DIRECTION_ROWS,
    DIRECTION_SHARE,
    PLAYER_ROWS,
    frames,
    real_directions,
    rows_of,
)
from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.hackmatrix.engines import engine_of
from hackmatrix.environments.hackmatrix.observations import records_of_features
from hackmatrix.environments.interface.environment import Environment, PyTree, optional_members
from hackmatrix.game.rules.actions import NUM_DIRECTIONS
from hackmatrix.game.rules.observation import FEATURE_SIZE, RECORD_SIZE

Array = jax.Array

# Records whose rows XLA sums at once: more take more memory, fewer more kernels.
_AT_ONCE = 1024
_AT_ONCE_ON_GPUS = 8192
# Of the first weights, of which some 80 and 30 are summed: small beside what a row learns.
_SPREAD = {"player": 0.02, "direction": 0.03}


def make(env: Environment, config: NetworkConfig) -> Network:
    """The network of `config` for the layout `full` of HackMatrix.

    Raises:
        UserError: it is another environment or layout, or the width is too small.
    """
    if optional_members(env).layout != "full" or env.feature_size != FEATURE_SIZE["full"]:
        raise UserError(
            "--architecture player_centred reads the whole board of HackMatrix: take --observation "
            "full"
        )
    if config.hidden_dim % DIRECTION_SHARE:
        raise UserError(
            f"--architecture player_centred: --hidden-dim must be a multiple of {DIRECTION_SHARE}, "
            f"got {config.hidden_dim}"
        )
    return PlayerCentredNetwork(env, config)


@with_jax_defaults
class PlayerCentredNetwork:
    """Reads compact records, or the features that are made of them; implements `Network`."""

    recurrent = False
    reads_features = False

    def __init__(self, env: Environment, config: NetworkConfig) -> None:
        self.num_actions = env.num_actions
        self._module = Views(env.num_actions, config)
        self._apply: Callable[..., Any] = self._module.apply

    def init(self, key: Array) -> PyTree:
        """Freshly initialised params."""
        return self._module.init(key, jnp.zeros((1, RECORD_SIZE), jnp.uint8))

    def initial_carry(self, num_games: int) -> PyTree:
        """The empty tree: this network has no carry."""
        return ()

    def __call__(
        self, params: PyTree, observations: PyTree, carry: PyTree = ()
    ) -> tuple[Array, Array, PyTree]:
        """Logits float32[B, 28] and values float32[B] of B observations, and the carry."""
        is_record = observations.shape[-1] == RECORD_SIZE
        records = observations if is_record else records_of_features(observations)
        logits, values = self._apply(params, records)
        return logits, values, carry


class Views(nn.Module):
    """The first layer, a trunk of `num_layers` dense layers, and heads.

    A direction's logit is the sum of a linear head on the trunk and a small head, the same for all
    directions, on its view and the trunk.
    """

    num_actions: int
    config: NetworkConfig

    @nn.compact
    def __call__(self, records: Array) -> tuple[Array, Array]:
        """uint8[B, RECORD_SIZE] -> logits float32[B, A], values float32[B]."""
        config = self.config
        dtype, width = jnp.dtype(config.dtype), config.hidden_dim
        narrow = width // DIRECTION_SHARE
        act: Any = relu if config.activation == "relu" else jnp.tanh

        def dense(name: str, size: int, inputs: Array, gain: float = math.sqrt(2)) -> Array:
            return Dense(size, gain, dtype, name=name)(inputs)

        def weights(name: str, rows: int, size: int) -> Array:
            spread = nn.initializers.normal(_SPREAD[name])
            table: Array = self.param(name, spread, (rows, size))
            return table

        own, others = sum_rows(
            records,
            weights("player", PLAYER_ROWS, width),
            weights("direction", DIRECTION_ROWS, narrow),
        )
        own = act(own + self.param("player_bias", nn.initializers.zeros_init(), (width,)))
        others = act(others + self.param("direction_bias", nn.initializers.zeros_init(), (narrow,)))
        hidden = jnp.concatenate([own, others.reshape(len(records), -1)], axis=1)
        for number in range(config.num_layers):
            hidden = dense(f"trunk_{number}", width, hidden)
            hidden = act(
                nn.LayerNorm(name=f"norm_{number}")(hidden) if config.layer_norm else hidden
            )
        logits = dense("logits", self.num_actions, hidden, 0.01)
        of_trunk = dense("step_trunk", narrow, hidden, 1.0)
        step = act(dense("step_view", narrow, others) + of_trunk[:, None])
        steps = logits[:, :NUM_DIRECTIONS] + dense("step", 1, step, 0.01)[..., 0]
        steps = real_directions(steps, frames(records, jnp), jnp)
        value = dense("value", 1, hidden, 1.0)
        return jnp.concatenate([steps, logits[:, NUM_DIRECTIONS:]], axis=1), value[..., 0]


@jax.custom_vjp
def sum_rows(records: Array, player: Array, direction: Array) -> tuple[Array, Array]:
    """The sums of the rows of B records, float32[B, H] and float32[B, 4, D].

    It goes by the platform that the program is lowered for: on CPUs the native engine does it,
    where it is there.

    Args:
        records: uint8[B, RECORD_SIZE].
        player: float32[PLAYER_ROWS, H].
        direction: float32[DIRECTION_ROWS, D].
    """

    def natively(records: Array, player: Array, direction: Array) -> tuple[Array, Array]:
        from hackmatrix.game.native import xla

        return xla.row_sums(records, DEFINITION.arrays(), player, direction)

    on_cpus = natively if _has_native_engine() else _counted_sums
    sums: tuple[Array, Array] = jax.lax.platform_dependent(
        records, player, direction, cpu=on_cpus, cuda=_gathered_sums, default=_counted_sums
    )
    return sums


def _forward(records: Array, player: Array, direction: Array) -> tuple[tuple[Array, Array], Array]:
    return sum_rows(records, player, direction), records


def _backward(records: Array, gradients: tuple[Array, Array]) -> tuple[None, Array, Array]:
    counts = PLAYER_ROWS, DIRECTION_ROWS

    def natively(records: Array, *gradients: Array) -> tuple[Array, Array]:
        from hackmatrix.game.native import xla

        return xla.row_gradients(records, DEFINITION.arrays(), counts, *gradients)

    def by_counts(
        records: Array, *gradients: Array, at_once: int = _AT_ONCE
    ) -> tuple[Array, Array]:
        sums = partial(_counted_sums, records, at_once=at_once)
        tables = [jnp.zeros((n, g.shape[-1])) for n, g in zip(counts, gradients, strict=True)]
        _, pull_back = jax.vjp(sums, *tables)
        result: tuple[Array, Array] = pull_back(gradients)
        return result

    on_cpus = natively if _has_native_engine() else by_counts
    on_gpus = partial(by_counts, at_once=_AT_ONCE_ON_GPUS)
    of_tables: tuple[Array, Array] = jax.lax.platform_dependent(
        records, *gradients, cpu=on_cpus, cuda=on_gpus, default=by_counts
    )
    return None, *of_tables


sum_rows.defvjp(_forward, _backward)


def _has_native_engine() -> bool:
    return engine_of("auto").NAME == "native"


def _counted_sums(
    records: Array, player: Array, direction: Array, *, at_once: int = _AT_ONCE
) -> tuple[Array, Array]:
    """`sum_rows` by products with how often each row is there.

    So accelerators add them in the same order every time, in the backward pass too.
    """

    def of_table(rows: Array, weights: Array) -> Array:  # int32[B, P] -> float32[B, H]
        @jax.checkpoint
        def of_record(rows: Array) -> Array:
            counts = jnp.zeros(len(weights)).at[rows].add(1.0)
            return counts.at[0].set(0.0) @ weights

        return jax.lax.map(of_record, rows, batch_size=at_once)

    of_player, of_directions = rows_of(records, jnp)
    sums = of_table(of_directions.reshape(-1, of_directions.shape[-1]), direction)
    return of_table(of_player, player), sums.reshape(len(records), NUM_DIRECTIONS, -1)


def _gathered_sums(records: Array, player: Array, direction: Array) -> tuple[Array, Array]:
    """`sum_rows` row by row, in few kernels on GPUs; TPUs gather slowly."""

    def of_record(record: Array) -> tuple[Array, Array]:
        rows = rows_of(record[None], jnp)
        own, others = (
            jnp.sum(weights[of_view] * (of_view > 0)[..., None], axis=-2)[0]
            for weights, of_view in zip((player, direction), rows, strict=True)
        )
        return own, others

    sums: tuple[Array, Array] = jax.lax.map(of_record, records, batch_size=_AT_ONCE_ON_GPUS)
    return sums
