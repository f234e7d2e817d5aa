"""The forward pass of an MLP in plain Python, for where there is no NumPy."""

import math
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hackmatrix.agents.roster.opinion import PolicyFunction
from hackmatrix.game.foresight.features import features

Layer = list[tuple[list[float], float]]  # for each output the weights of all inputs, and a bias


def make_policy(settings: dict[str, Any], weights: bytes) -> PolicyFunction:
    """The policy of an MLP.

    Args:
        settings: `layout` of the features, `activation`, and `sizes`, inputs and outputs of each
            layer: the trunk's, logits, value.
        weights: float32, little-endian: for each layer those of its outputs one after another, then
            its biases.
    """
    numbers = array("f", weights)
    layers, start = list[Layer](), 0
    for inputs, outputs in settings["sizes"]:
        bias = numbers[start + inputs * outputs :][:outputs]
        rows = [numbers[start + inputs * i :][:inputs].tolist() for i in range(outputs)]
        layers.append(list(zip(rows, bias, strict=True)))
        start += (inputs + 1) * outputs
    squash = math.tanh if settings["activation"] == "tanh" else _relu
    return partial(_forward, layers, settings["layout"], squash)


def _relu(x: float) -> float:
    return max(x, 0.0)


def _forward(
    layers: list[Layer],
    layout: str,
    squash: Callable[[float], float],
    record: bytes,
    mask: Sequence[bool],
) -> tuple[list[float], float]:
    """The forward pass of `agents/networks/numpy_forward.py`, without NumPy."""
    del mask
    *trunk, logits, value = layers
    hidden: Sequence[float] = features(record, layout)
    for layer in trunk:
        hidden = [squash(x) for x in _outputs(layer, hidden)]
    return _outputs(logits, hidden), _outputs(value, hidden)[0]


def _outputs(layer: Layer, inputs: Sequence[float]) -> list[float]:
    """A product that skips inputs of 0, which most features and half of the units are."""
    used = [(i, x) for i, x in enumerate(inputs) if x]
    return [sum([weights[i] * x for i, x in used], bias) for weights, bias in layer]
