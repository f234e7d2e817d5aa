"""Forward passes on NumPy, one position at a time: the page plays and shows agents without JAX."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.cells_forward import EPSILON, NUMPY, forward, shapes_of
from hackmatrix.agents.networks.cells_reading import reading_of
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.observation import FEATURE_SIZE

Params = Mapping[str, Any]
Array = np.ndarray
# From features and what is remembered of the game (None at its start) to logits [28], value, and
# what is remembered then.
Pass = Callable[[Sequence[float], Any], tuple[Array, float, Any]]


def forward_pass(config: NetworkConfig, layout: str, params: Params) -> Pass | None:
    """The forward pass of a network of HackMatrix; None if it has none here, or params don't fit.

    Args:
        config: the network's settings; its architecture is one of the table.
        layout: what it reads.
        params: nested dicts of arrays.
    """
    if config.architecture not in _PASSES or _shapes(params) != _wanted(config, layout):
        return None
    return partial(_PASSES[config.architecture], config, layout, params)


def _mlp(
    config: NetworkConfig, layout: str, params: Params, features: Sequence[float], memory: None
) -> tuple[Array, float, None]:
    """`hackmatrix/agents/networks/mlp.py`."""
    del layout, memory
    layers = params["params"]
    seen = _trunk(config, layers, features)
    logits, value = (_dense(layers[f"Dense_{config.num_layers + i}"], seen) for i in (0, 1))
    return logits, float(value[0]), None


def _gru(
    config: NetworkConfig, layout: str, params: Params, features: Sequence[float], memory: Any
) -> tuple[Array, float, Array]:
    """`hackmatrix/agents/networks/gru.py`."""
    del layout
    layers, size = params["params"], config.hidden_dim
    carry = np.zeros(size, np.float32) if memory is None else memory
    seen = _trunk(config, layers, features)
    r, z, n = _dense(layers[f"Dense_{config.num_layers}"], seen).reshape(3, size)
    of_r, of_z, of_n = (carry @ layers["memory"]).reshape(3, size)
    update = _sigmoid(z + of_z)
    carry = (1 - update) * np.tanh(n + _sigmoid(r + of_r) * of_n) + update * carry
    both = np.concatenate([seen, carry])
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


_PASSES: dict[str, Any] = {"mlp": _mlp, "gru": _gru, "cells": _cells}


def _trunk(config: NetworkConfig, layers: Params, features: Sequence[float]) -> Array:
    hidden = np.asarray(features, np.float32)
    for number in range(config.num_layers):
        hidden = _dense(layers[f"Dense_{number}"], hidden)
        if config.layer_norm:
            norm = layers[f"LayerNorm_{number}"]
            centred = hidden - hidden.mean()
            hidden = centred / np.sqrt((centred**2).mean() + EPSILON) * norm["scale"] + norm["bias"]
        hidden = np.tanh(hidden) if config.activation == "tanh" else np.maximum(hidden, 0)
    return hidden


def _dense(layer: Params, inputs: Array) -> Array:
    sums: Array = inputs @ layer["kernel"] + layer["bias"]
    return sums


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _wanted(config: NetworkConfig, layout: str) -> dict[tuple[str, ...], tuple[int, ...]]:
    """The shapes of the arrays that a network has, by the names on the way to them."""
    if config.architecture == "cells":
        found = shapes_of(reading_of(layout), config)
        return {("params", *name): shape for name, shape in found.items()}
    hidden = config.hidden_dim
    sizes = [(FEATURE_SIZE[layout], hidden)] + [(hidden, hidden)] * (config.num_layers - 1)
    shapes: dict[tuple[str, ...], tuple[int, ...]] = {}
    if config.architecture == "gru":
        shapes["params", "memory"] = (hidden, 3 * hidden)
        sizes += [(hidden, 3 * hidden)]
    read = 2 * hidden if config.architecture == "gru" else hidden
    for number, (inputs, outputs) in enumerate([*sizes, (read, NUM_ACTIONS), (read, 1)]):
        shapes["params", f"Dense_{number}", "kernel"] = (inputs, outputs)
        shapes["params", f"Dense_{number}", "bias"] = (outputs,)
    for number in range(config.num_layers * config.layer_norm):
        for name in ("scale", "bias"):
            shapes["params", f"LayerNorm_{number}", name] = (hidden,)
    return shapes


def _shapes(params: Params) -> dict[tuple[str, ...], tuple[int, ...]]:
    def walk(node: Any, name: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        if isinstance(node, Mapping):
            for key, value in node.items():
                yield from walk(value, (*name, key))
        else:
            yield name, np.shape(node)

    return dict(walk(params, ()))
