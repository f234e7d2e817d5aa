"""The forward pass of the network `cells`, on JAX and NumPy alike.

Arrays have the axis of games last: a number of a cell is then a row of games, cells are mixed by
products with matrices of cells, and all that is left are elementwise operations over games.

    board   ->  residual blocks, each: norm, spread over the cells, dense, activation, dense
    whole   ->  trunk: dense, norm, activation; reads the game's numbers, the board's mean and
                maximum, and the player's cell and its neighbours
    actions ->  for each: activation of (what it reads) W + (trunk) V + e, times w; and a part that
                is a head on the trunk, as in an MLP. What a direction reads is the cell that it
                leads to, what siphoning reads the player's cell, what a program reads its features.

`spread` is a depthwise convolution whose kernel reaches from any cell to any other, so one block
sees a whole row; it is computed as a product with the 36 x 36 matrix that it amounts to.
"""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.agents.architectures import NetworkConfig
from hackmatrix.agents.cells_reading import NOWHERE, Indices, Reading
from hackmatrix.rules.actions import NUM_ACTIONS, NUM_DIRECTIONS
from hackmatrix.rules.board import CELLS, NEIGHBOUR, SIZE, col, row
from hackmatrix.rules.observation import PLAYER_CHANNELS, channel_starts
from hackmatrix.rules.programs import PROGRAMS

Params = Mapping[str, Any]
Shapes = dict[tuple[str, ...], tuple[int, ...]]

CHANNELS_SHARE = 8  # a cell has this part of `hidden_dim` as channels
REACH = 2 * SIZE - 1  # rows or columns from one cell to another: -5 to 5
EPSILON = 1e-6  # added to variances, as in flax's LayerNorm

_PLAYER = channel_starts(PLAYER_CHANNELS)
_CELL = np.arange(CELLS)
_ROWS, _COLS = row(_CELL), col(_CELL)  # type: ignore[arg-type]
# OFFSET[c, d]: index of the kernel's weight from cell d to cell c.
OFFSET = (_ROWS[:, None] - _ROWS + SIZE - 1) * REACH + (_COLS[:, None] - _COLS + SIZE - 1)
# CAME_FROM[direction, c]: the cell from which the direction leads to c; CELLS where none does.
CAME_FROM = np.full((NUM_DIRECTIONS, CELLS), CELLS)
for _cell, _neighbours in enumerate(NEIGHBOUR):
    for _direction, _next in enumerate(_neighbours):
        if _next is not None:
            CAME_FROM[_direction, _next] = _cell


class Backend(NamedTuple):
    """NumPy or JAX."""

    xp: ModuleType
    dot: Callable[[Any, Any], Any]  # of matrices


NUMPY = Backend(np, np.matmul)


def shapes_of(reading: Reading, config: NetworkConfig) -> Shapes:
    """The shapes of the params' arrays by the names on the way to them."""
    hidden, channels = config.hidden_dim, config.hidden_dim // CHANNELS_SHARE
    shapes: Shapes = {}

    def dense(*name: str, inputs: int, outputs: int) -> None:
        shapes[(*name, "kernel")] = (inputs, outputs)
        shapes[(*name, "bias")] = (outputs,)

    def norm(*name: str, size: int) -> None:
        shapes[(*name, "scale")] = (size,)
        shapes[(*name, "bias")] = (size,)

    inputs, of_cell = len(reading.game), 0
    if reading.board is not None:
        dense("cells", inputs=len(reading.board) + 1, outputs=channels)
        for number in range(config.num_layers):
            block = f"block_{number}"
            norm(block, "norm", size=channels)
            shapes[block, "spread"] = (channels, REACH, REACH)
            dense(block, "first", inputs=channels, outputs=channels)
            dense(block, "second", inputs=channels, outputs=channels)
        norm("norm", size=channels)
        inputs, of_cell = inputs + (3 + NUM_DIRECTIONS) * channels, channels
    for number in range(config.num_layers):
        dense(f"trunk_{number}", inputs=inputs, outputs=hidden)
        norm(f"trunk_{number}", "norm", size=hidden)
        inputs = hidden
    for kind, count, size in (
        ("directions", NUM_DIRECTIONS, len(reading.directions) + of_cell),
        ("siphon", 1, len(reading.siphon) + of_cell),
        ("programs", len(PROGRAMS), len(reading.programs)),
    ):
        shapes[kind, "own", "kernel"] = (size, channels)
        shapes[kind, "trunk", "kernel"] = (hidden, channels)
        shapes[kind, "embedding"] = (channels, count)
        shapes[kind, "head"] = (channels, count)
    dense("logits", inputs=hidden, outputs=NUM_ACTIONS)
    dense("value", inputs=hidden, outputs=1)
    return shapes


def forward(
    params: Params, features: Any, reading: Reading, activation: str, backend: Backend
) -> tuple[Any, Any]:
    """Logits float32[B, 28] and values float32[B] of features float32[B, F]."""
    xp = backend.xp
    layers, columns = params["params"], features.T
    act = xp.tanh if activation == "tanh" else lambda x: xp.maximum(x, 0)
    near, whole = None, columns[reading.game]
    if reading.board is not None:
        board = _board(layers, columns, reading.board, act, backend)
        near = around(board, player_cell(columns, xp), xp)
        pooled = [board.mean(axis=1), board.max(axis=1), near.reshape(-1, near.shape[-1])]
        whole = xp.concatenate([whole, *pooled])
    number = 0
    while (layer := layers.get(f"trunk_{number}")) is not None:
        whole = act(_normalised(_dense(layer, whole, backend), layer["norm"]))
        number += 1
    own = _own(columns, near, reading, xp)
    parts = [_of_actions(layers[kind], own[kind], whole, act, backend) for kind in own]
    logits = xp.concatenate(parts) + _dense(layers["logits"], whole, backend)
    return logits.T, _dense(layers["value"], whole, backend)[0]


def player_cell(columns: Any, xp: ModuleType) -> Any:
    """Where the player is, float32[36, B]: 1 at its cell; of features float32[F, B]."""
    rows, cols = (xp.rint(columns[_PLAYER[name]] * (SIZE - 1)) for name in ("row", "col"))
    return (rows * SIZE + cols == _CELL[:, None]).astype(columns.dtype)


def around(board: Any, here: Any, xp: ModuleType) -> Any:
    """The player's cell and its four neighbours, float32[C, 5, B]; zeros beyond the edge.

    Args:
        board: float32[C, 36, B].
        here: float32[36, B], 1 at the player's cell.
        xp: jnp or NumPy.
    """
    nowhere = xp.zeros_like(here[:1])
    reached = xp.concatenate([here, nowhere])[CAME_FROM]
    places = xp.concatenate([here[None], reached])
    return xp.sum(board[:, None] * places, axis=2)


def _board(
    layers: Params, columns: Any, indices: Indices, act: Callable[[Any], Any], backend: Backend
) -> Any:
    """The cells after all blocks, float32[C, 36, B]."""
    here = player_cell(columns, backend.xp)[None]
    board = _dense(layers["cells"], backend.xp.concatenate([columns[indices], here]), backend)
    number = 0
    while (block := layers.get(f"block_{number}")) is not None:
        seen = spread(_normalised(board, block["norm"]), block["spread"], backend.xp)
        seen = act(_dense(block["first"], seen, backend))
        board = board + _dense(block["second"], seen, backend)
        number += 1
    return _normalised(board, layers["norm"])


def spread(board: Any, kernel: Any, xp: ModuleType) -> Any:
    """The depthwise convolution of a board float32[C, 36, B] with a kernel float32[C, 11, 11]."""
    matrices = kernel.reshape(len(kernel), -1)[:, OFFSET]
    return xp.matmul(matrices, board)


def _own(columns: Any, near: Any, reading: Reading, xp: ModuleType) -> dict[str, Any]:
    """What each kind of action reads besides the trunk, float32[J, n, B]."""
    own = {
        "directions": _numbers(columns, reading.directions),
        "siphon": _numbers(columns, reading.siphon),
        "programs": _numbers(columns, reading.programs),
    }
    if near is not None:
        own["directions"] = xp.concatenate([own["directions"], near[:, 1:]])
        own["siphon"] = xp.concatenate([own["siphon"], near[:, :1]])
    return own


def _numbers(columns: Any, indices: Indices) -> Any:
    """float32[J, n, B] of features float32[F, B]."""
    return columns[indices] * (indices != NOWHERE).astype(np.float32)[..., None]


def _of_actions(
    layer: Params, own: Any, whole: Any, act: Callable[[Any], Any], backend: Backend
) -> Any:
    """The logits of one kind of actions, float32[n, B]."""
    common = _product(layer["trunk"]["kernel"], whole, backend)[:, None]
    hidden = act(
        _product(layer["own"]["kernel"], own, backend) + common + layer["embedding"][..., None]
    )
    return (hidden * layer["head"][..., None]).sum(axis=0)


def _dense(layer: Params, inputs: Any, backend: Backend) -> Any:
    """float32[I, ..., B] -> float32[O, ..., B]."""
    sums = _product(layer["kernel"], inputs, backend)
    return sums + layer["bias"].reshape(-1, *[1] * (inputs.ndim - 1))


def _product(kernel: Any, inputs: Any, backend: Backend) -> Any:
    sums = backend.dot(kernel.T, inputs.reshape(len(kernel), -1))
    return sums.reshape(-1, *inputs.shape[1:])


def _normalised(inputs: Any, layer: Params) -> Any:
    """float32[C, ..., B] with mean 0 and deviation 1 over C, then scaled and shifted."""
    per_channel = (-1, *[1] * (inputs.ndim - 1))
    centred = inputs - inputs.mean(axis=0)
    variance = (centred**2).mean(axis=0)
    scale, bias = layer["scale"].reshape(per_channel), layer["bias"].reshape(per_channel)
    return centred * (variance + EPSILON) ** -0.5 * scale + bias
