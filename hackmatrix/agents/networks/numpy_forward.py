"""Forward passes on NumPy, one position at a time: the page plays and shows agents without JAX."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.cells_forward import EPSILON, NUMPY, forward, reading_of, shapes_of
from hackmatrix.agents.networks.policy import Policy
from hackmatrix.agents.networks.rows import (
    DIRECTION_ROWS,
    DIRECTION_SHARE,
    PLAYER_ROWS,
    frames,
    real_directions,
    rows_of,
)
from hackmatrix.environments.hackmatrix.observations import records_of_features
from hackmatrix.game.rules.actions import NUM_ACTIONS, NUM_DIRECTIONS
from hackmatrix.game.rules.observation import FEATURE_SIZE

Params = Mapping[str, Any]
Array = np.ndarray
# From features and what is remembered of the game (None at its start) to logits [28], value, and
# what is remembered then.
Pass = Callable[[Sequence[float], Any], tuple[Array, float, Any]]


def forward_pass(policy: Policy) -> Pass | None:
    """The forward pass of a network of HackMatrix; None if it has none here.

    Raises:
        UserError: the params don't fit it.
    """
    config, layout = policy.config, policy.observation
    if config.architecture not in _PASSES:
        return None
    policy.check_shapes(dict(_shapes(config, layout)))
    forward = partial(_PASSES[config.architecture], config, layout, policy.params)
    return forward if config.value == "return" else partial(_with_chance, forward)


def batch_logits(policy: Policy) -> Callable[[Array], Array] | None:
    """From features [N, F] of N positions to logits [N, 28]; None if it is no plain MLP."""
    config, layers = policy.config, policy.params["params"]
    if config.architecture != "mlp" or config.layer_norm:
        return None
    return lambda features: _dense(
        layers[f"Dense_{config.num_layers}"], _trunk(config, layers, features)
    )


def _with_chance(forward: Pass, features: Sequence[float], memory: Any) -> tuple[Array, float, Any]:
    """`ChanceNetwork` of `hackmatrix/agents/networks/network.py`."""
    logits, value, memory = forward(features, memory)
    return logits, float(_sigmoid(np.asarray(value, np.float32))), memory


def _mlp(
    config: NetworkConfig, layout: str, params: Params, features: Sequence[float], memory: None
) -> tuple[Array, float, None]:
    """`hackmatrix/agents/networks/mlp.py`."""
    del layout, memory
    layers = params["params"]
    seen = _trunk(config, layers, features)
    logits, value = (_dense(layers[f"Dense_{config.num_layers + i}"], seen) for i in (0, 1))
    return logits, float(value[0]), None


def _separate_critic(
    config: NetworkConfig, layout: str, params: Params, features: Sequence[float], memory: None
) -> tuple[Array, float, None]:
    """`hackmatrix/agents/networks/separate_critic.py`."""
    del layout, memory
    layers, depth = params["params"], config.num_layers
    logits, value = (
        _dense(layers[f"Dense_{2 * depth + i}"], _trunk(config, layers, features, i * depth))
        for i in (0, 1)
    )
    return logits, float(value[0]), None


def _gru(
    config: NetworkConfig, layout: str, params: Params, features: Sequence[float], memory: Any
) -> tuple[Array, float, Array]:
    """`hackmatrix/agents/networks/gru.py`."""
    del layout
    layers, size = params["params"], config.hidden_dim
    carry = np.zeros(size, np.float32) if memory is None else memory
    hidden = _trunk(config, layers, features)
    r, z, n = _dense(layers[f"Dense_{config.num_layers}"], hidden).reshape(3, size)
    of_r, of_z, of_n = (carry @ layers["memory"]).reshape(3, size)
    update = _sigmoid(z + of_z)
    carry = (1 - update) * np.tanh(n + _sigmoid(r + of_r) * of_n) + update * carry
    both = np.concatenate([hidden, carry])
    logits, value = (_dense(layers[f"Dense_{config.num_layers + i}"], both) for i in (1, 2))
    return logits, float(value[0]), carry


def _cells(
    config: NetworkConfig, layout: str, params: Params, features: Sequence[float], memory: None
) -> tuple[Array, float, None]:
    """`hackmatrix/agents/networks/cells.py`."""
    del memory
    one = np.asarray(features, np.float32)[None]
    logits, values = forward(params, one, reading_of(layout), config.activation, NUMPY)
    return logits[0], float(values[0]), None


def _player_centred(
    config: NetworkConfig, layout: str, params: Params, features: Sequence[float], memory: None
) -> tuple[Array, float, None]:
    """`hackmatrix/agents/networks/player_centred.py`."""
    del layout, memory
    layers = params["params"]

    def act(inputs: Array) -> Array:
        result: Array = np.tanh(inputs) if config.activation == "tanh" else np.maximum(inputs, 0)
        return result

    records = records_of_features(np.asarray(features, np.float32)[None])
    of_player, of_directions = (rows[0] for rows in rows_of(records, np))
    own = act(layers["player"][of_player[of_player > 0]].sum(axis=0) + layers["player_bias"])
    sums = [layers["direction"][rows[rows > 0]].sum(axis=0) for rows in of_directions]
    others = act(np.array(sums) + layers["direction_bias"])
    hidden = np.concatenate([own, others.reshape(-1)])
    for index in range(config.num_layers):
        hidden = _dense(layers[f"trunk_{index}"], hidden)
        if config.layer_norm:
            hidden = _normalized(layers[f"norm_{index}"], hidden)
        hidden = act(hidden)
    logits = _dense(layers["logits"], hidden)
    step = act(_dense(layers["step_view"], others) + _dense(layers["step_trunk"], hidden))
    steps = logits[:NUM_DIRECTIONS] + _dense(layers["step"], step)[:, 0]
    logits[:NUM_DIRECTIONS] = real_directions(steps[None], frames(records, np), np)[0]
    return logits, float(_dense(layers["value"], hidden)[0]), None


_PASSES: dict[str, Any] = {
    "mlp": _mlp,
    "separate_critic": _separate_critic,
    "gru": _gru,
    "cells": _cells,
    "player_centred": _player_centred,
}


def _trunk(
    config: NetworkConfig, layers: Params, features: Sequence[float] | Array, first: int = 0
) -> Array:
    hidden = np.asarray(features, np.float32)
    for number in range(first, first + config.num_layers):
        hidden = _dense(layers[f"Dense_{number}"], hidden)
        if config.layer_norm:
            hidden = _normalized(layers[f"LayerNorm_{number}"], hidden)
        hidden = np.tanh(hidden) if config.activation == "tanh" else np.maximum(hidden, 0)
    return hidden


def _normalized(norm: Params, inputs: Array) -> Array:
    centred = inputs - inputs.mean()
    scaled: Array = centred / np.sqrt((centred**2).mean() + EPSILON) * norm["scale"] + norm["bias"]
    return scaled


def _dense(layer: Params, inputs: Array) -> Array:
    sums: Array = inputs @ layer["kernel"] + layer["bias"]
    return sums


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _shapes(config: NetworkConfig, layout: str) -> Iterator[tuple[str, list[int]]]:
    """The shapes of the arrays that a network has, by their names."""
    if config.architecture == "cells":
        for path, shape in shapes_of(reading_of(layout), config).items():
            yield ".".join(("params", *path)), list(shape)
        return
    if config.architecture == "player_centred":
        yield from _player_centred_shapes(config)
        return
    hidden, is_gru = config.hidden_dim, config.architecture == "gru"
    trunks = 2 if config.architecture == "separate_critic" else 1
    sizes = [(FEATURE_SIZE[layout], hidden)] + [(hidden, hidden)] * (config.num_layers - 1)
    sizes *= trunks
    if is_gru:
        yield "params.memory", [hidden, 3 * hidden]
        sizes.append((hidden, 3 * hidden))
    read = 2 * hidden if is_gru else hidden
    for layer, (inputs, outputs) in enumerate([*sizes, (read, NUM_ACTIONS), (read, 1)]):
        yield from _dense_shapes(f"Dense_{layer}", inputs, outputs)
    for layer in range(trunks * config.num_layers * config.layer_norm):
        for name in ("scale", "bias"):
            yield f"params.LayerNorm_{layer}.{name}", [hidden]


def _player_centred_shapes(config: NetworkConfig) -> Iterator[tuple[str, list[int]]]:
    hidden, narrow = config.hidden_dim, config.hidden_dim // DIRECTION_SHARE
    for name, rows, width in (
        ("player", PLAYER_ROWS, hidden),
        ("direction", DIRECTION_ROWS, narrow),
    ):
        yield f"params.{name}", [rows, width]
        yield f"params.{name}_bias", [width]
    inputs = hidden + NUM_DIRECTIONS * narrow
    for index in range(config.num_layers):
        yield from _dense_shapes(f"trunk_{index}", inputs, hidden)
        inputs = hidden
        for name in ("scale", "bias") if config.layer_norm else ():
            yield f"params.norm_{index}.{name}", [hidden]
    yield from _dense_shapes("logits", inputs, NUM_ACTIONS)
    yield from _dense_shapes("value", inputs, 1)
    yield from _dense_shapes("step_trunk", inputs, narrow)
    yield from _dense_shapes("step_view", narrow, narrow)
    yield from _dense_shapes("step", narrow, 1)


def _dense_shapes(name: str, inputs: int, outputs: int) -> Iterator[tuple[str, list[int]]]:
    yield f"params.{name}.kernel", [inputs, outputs]
    yield f"params.{name}.bias", [outputs]
