"""The forward pass of the network `cells`, on JAX and NumPy alike.

Arrays have the axis of games last: a number of a cell is then a row of games, cells are mixed by
products with matrices of cells, and all that is left are elementwise operations over games.

    board   ->  residual blocks, each: norm, spread over the cells, dense, activation, dense
    whole   ->  trunk: dense, norm, bias, activation; reads the game's numbers, the mean over the
                cells, and the player's cell and its neighbours
    actions ->  for each: activation of (what it reads) W + (trunk) V + e, times w; and a part that
                is a head on the trunk, as in an MLP. What a direction reads is the cell that it
                leads to, what siphoning reads the player's cell, what a program reads its features.

`spread` is a depthwise convolution whose kernel reaches from any cell to any other, so one block
sees a whole row; it is computed as a product with the 36 x 36 matrix that it amounts to. `norm` is
a layer norm without a scale and a shift of its own: what follows has them.
"""

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.game.rules.actions import NUM_ACTIONS, NUM_DIRECTIONS
from hackmatrix.game.rules.board import CELLS, NEIGHBOUR, SIZE
from hackmatrix.game.rules.observation import (
    CELL_FEATURES,
    CLASSIC_SIZE,
    EXTRA_CELL_FEATURES,
    FEATURE_SIZE,
    PLAYER_CHANNELS,
    PLAYER_FEATURES,
    channel_starts,
)
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.tactical import GROUPS, START, STRIKES

# --- The inputs of the network `cells` in each layout: features of cells, of actions, of the game -


Indices = np.ndarray  # of features

NOWHERE = -1  # the index of a feature that an action does not have: it reads 0


class Reading(NamedTuple):
    """Places of a layout's features, by what they are about."""

    size: int  # number of features
    # The first feature of cell 0 and the number of features of a cell, of each stretch of the
    # layout that has some of all cells one after another; empty: the layout has no board.
    board: tuple[tuple[int, int], ...]
    game: Indices  # int[G], those of the whole game
    directions: Indices  # int[J, 4], what J features say of each direction
    siphon: Indices  # int[J', 1], of siphoning
    programs: Indices  # int[J'', 23], of each program


def reading_of(layout: str) -> Reading:
    """The inputs that are read of an observation in this layout."""
    return _tactical() if layout == "tactical" else _raw(full=layout == "full")


def _raw(*, full: bool) -> Reading:
    """The raw layouts show the board; of directions and siphoning its cells tell."""
    size = FEATURE_SIZE["full" if full else "classic"]
    programs = np.arange(len(PROGRAMS))
    board = [(PLAYER_FEATURES + len(PROGRAMS), CELL_FEATURES)]
    of_programs = [PLAYER_FEATURES + programs]  # owned
    if full:
        board.append((CLASSIC_SIZE, EXTRA_CELL_FEATURES))
        of_programs.append(size - len(PROGRAMS) + programs)  # owned and affordable
    of_cells = [np.arange(first, first + CELLS * count) for first, count in board]
    game = np.setdiff1d(np.arange(size), np.concatenate(of_cells))
    nothing = np.zeros((0, NUM_DIRECTIONS), int)
    return Reading(size, tuple(board), game, nothing, nothing[:, :1], np.array(of_programs))


def _tactical() -> Reading:
    """The layout `tactical` has no board, but says more of each action than cells would."""

    def rows(names: list[str], size: int, first: int = 0) -> list[np.ndarray]:
        return [START[name] + first + np.arange(size) for name in names]

    names = [group.name for group in GROUPS]
    window = [name for name in names if name.startswith("cell_")]
    directions = [
        *rows([name for name in names if name.startswith("go_")], NUM_DIRECTIONS),
        *rows(window, NUM_DIRECTIONS),  # the next cell in each direction,
        *rows(window, NUM_DIRECTIONS, first=NUM_DIRECTIONS),  # and the one behind it
    ]
    siphon = rows([name for name in names if name.startswith(("here_", "best_"))], 1)
    programs = rows([g.name for g in GROUPS if g.size == len(PROGRAMS)], len(PROGRAMS))
    for struck in rows([g.name for g in GROUPS if g.size == len(STRIKES)], len(STRIKES)):
        row = np.full(len(PROGRAMS), NOWHERE)
        row[list(STRIKES)] = struck
        programs.append(row)
    size = FEATURE_SIZE["tactical"]
    read = map(np.array, (directions, siphon, programs))
    return Reading(size, (), np.arange(size), *read)


# --- The forward pass of the network `cells`, on JAX and NumPy alike ------------------------------


Params = Mapping[str, Any]
Shapes = dict[tuple[str, ...], tuple[int, ...]]

CHANNELS_SHARE = 8  # a cell has this part of `hidden_dim` as channels
REACH = 2 * SIZE - 1  # rows or columns from one cell to another: -5 to 5
EPSILON = 1e-6  # added to variances, as in flax

_PLAYER = channel_starts(PLAYER_CHANNELS)
_CELL = np.arange(CELLS)
_ROWS, _COLS = _CELL // SIZE, _CELL % SIZE
_OFFSET = (_ROWS[:, None] - _ROWS + SIZE - 1) * REACH + (_COLS[:, None] - _COLS + SIZE - 1)
# WEIGHT_OF[k, c * 36 + d]: 1 where weight k of a kernel is that from cell d to cell c.
WEIGHT_OF = (_OFFSET.reshape(-1) == np.arange(REACH**2)[:, None]).astype(np.float32)
# REACHED[p * 36 + c, d]: 1 where a player on cell d has cell c at place p: its own, then those that
# the directions lead to.
REACHED = np.zeros(((1 + NUM_DIRECTIONS) * CELLS, CELLS), np.float32)
for _cell, _neighbours in enumerate(NEIGHBOUR):
    for _place, _other in enumerate((_cell, *_neighbours)):
        if _other is not None:
            REACHED[_place * CELLS + _other, _cell] = 1


class ArrayOperations(NamedTuple):
    """The operations that differ between NumPy and JAX."""

    xp: ModuleType
    dot: Callable[[Any, Any], Any]  # of matrices
    norm: Callable[[Any], Any]  # float32[C, ..., B] with mean 0 and deviation 1 over C


def _norm(inputs: Any) -> Any:
    centred = inputs - inputs.mean(axis=0)
    return centred / np.sqrt((centred**2).mean(axis=0) + EPSILON)


NUMPY = ArrayOperations(np, np.matmul, _norm)


def shapes_of(reading: Reading, config: NetworkConfig) -> Shapes:
    """The shapes of the params' arrays by the names on the way to them."""
    hidden, channels = config.hidden_dim, config.hidden_dim // CHANNELS_SHARE
    shapes: Shapes = {}

    def dense(*name: str, inputs: int, outputs: int, bias: bool = True) -> None:
        shapes[(*name, "kernel")] = (inputs, outputs)
        if bias:
            shapes[(*name, "bias")] = (outputs,)

    inputs, of_cell = len(reading.game), 0
    if reading.board:
        dense("cells", inputs=sum(count for _, count in reading.board) + 1, outputs=channels)
        for block_index in range(config.num_layers):
            block = f"block_{block_index}"
            shapes[block, "spread"] = (channels, REACH, REACH)
            dense(block, "first", inputs=channels, outputs=channels)
            dense(block, "second", inputs=channels, outputs=channels, bias=False)
        dense("near", inputs=channels, outputs=channels, bias=False)
        dense("mean", inputs=channels, outputs=channels, bias=False)
        inputs, of_cell = inputs + (2 + NUM_DIRECTIONS) * channels, channels
    for block_index in range(config.num_layers):
        dense(f"trunk_{block_index}", inputs=inputs, outputs=hidden)
        inputs = hidden
    for layer, count, size in (
        ("directions", NUM_DIRECTIONS, len(reading.directions) + of_cell),
        ("siphon", 1, len(reading.siphon) + of_cell),
        ("programs", len(PROGRAMS), len(reading.programs)),
    ):
        dense(layer, "own", inputs=size, outputs=channels, bias=False)
        dense(layer, "trunk", inputs=hidden, outputs=channels, bias=False)
        shapes[layer, "embedding"] = (channels, count)
        shapes[layer, "head"] = (channels, count)
    dense("logits", inputs=hidden, outputs=NUM_ACTIONS)
    dense("value", inputs=hidden, outputs=1)
    return shapes


def forward(
    params: Params, features: Any, reading: Reading, activation: str, backend: ArrayOperations
) -> tuple[Any, Any]:
    """Logits float32[B, 28] and values float32[B] of features float32[B, F]."""
    xp = backend.xp
    layers, columns = params["params"], features.T
    act = xp.tanh if activation == "tanh" else lambda x: xp.maximum(x, 0)
    near, whole = None, columns
    if reading.board:
        board = _board(layers, columns, reading, act, backend)
        near = around(board, player_cell(columns, xp), xp)
        near = backend.norm(_product(layers["near"]["kernel"], near, backend))
        mean = backend.norm(_product(layers["mean"]["kernel"], board.mean(axis=1), backend))
        whole = xp.concatenate([columns[reading.game], mean, near.reshape(-1, near.shape[-1])])
    for layer in _layers_of(layers, "trunk"):
        sums = backend.norm(_product(layer["kernel"], whole, backend))
        whole = act(sums + layer["bias"][:, None])
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
    places = (REACHED @ here).reshape(-1, *here.shape)
    # One sum for each place: XLA on CPU takes long for the derivative of a sum over all at once.
    return xp.stack([(board * place).sum(axis=1) for place in places], axis=1)


def _board(
    layers: Params,
    columns: Any,
    reading: Reading,
    act: Callable[[Any], Any],
    backend: ArrayOperations,
) -> Any:
    """The cells after all blocks, float32[C, 36, B]."""
    xp = backend.xp
    shown = xp.concatenate([cells_of(columns, reading, xp), player_cell(columns, xp)[None]])
    board = _dense(layers["cells"], shown, backend)
    for block in _layers_of(layers, "block"):
        seen = depthwise_convolution(backend.norm(board), block["spread"], xp)
        seen = act(_dense(block["first"], seen, backend))
        board = board + _product(block["second"]["kernel"], seen, backend)
    return board


def _layers_of(layers: Params, name: str) -> Iterator[Params]:
    number = 0
    while (layer := layers.get(f"{name}_{number}")) is not None:
        yield layer
        number += 1


def cells_of(columns: Any, reading: Reading, xp: ModuleType) -> Any:
    """float32[K, 36, B]: the features of each cell, of features float32[F, B]."""
    parts = [columns[first : first + CELLS * count] for first, count in reading.board]
    parts = [part.reshape(CELLS, -1, part.shape[-1]) for part in parts]
    return xp.swapaxes(xp.concatenate(parts, axis=1), 0, 1)


def depthwise_convolution(board: Any, kernel: Any, xp: ModuleType) -> Any:
    """The depthwise convolution of a board float32[C, 36, B] with a kernel float32[C, 11, 11]."""
    # A product, because the derivative of picking weights by index is slow.
    matrices = (kernel.reshape(len(kernel), -1) @ WEIGHT_OF).reshape(-1, CELLS, CELLS)
    return xp.matmul(matrices, board)


def _own(columns: Any, near: Any, reading: Reading, xp: ModuleType) -> dict[str, Any]:
    """The inputs of each kind of action besides the trunk, float32[J, n, B]."""
    own = {
        "directions": _gather(columns, reading.directions),
        "siphon": _gather(columns, reading.siphon),
        "programs": _gather(columns, reading.programs),
    }
    if near is not None:
        own["directions"] = xp.concatenate([own["directions"], near[:, 1:]])
        own["siphon"] = xp.concatenate([own["siphon"], near[:, :1]])
    return own


def _gather(columns: Any, indices: Indices) -> Any:
    """float32[J, n, B] of features float32[F, B]."""
    return columns[indices] * (indices != NOWHERE).astype(np.float32)[..., None]


def _of_actions(
    layer: Params, own: Any, whole: Any, act: Callable[[Any], Any], backend: ArrayOperations
) -> Any:
    """The logits of one kind of actions, float32[n, B]."""
    common = _product(layer["trunk"]["kernel"], whole, backend)[:, None]
    hidden = act(
        _product(layer["own"]["kernel"], own, backend) + common + layer["embedding"][..., None]
    )
    return (hidden * layer["head"][..., None]).sum(axis=0)


def _dense(layer: Params, inputs: Any, backend: ArrayOperations) -> Any:
    """float32[I, ..., B] -> float32[O, ..., B]."""
    sums = _product(layer["kernel"], inputs, backend)
    return sums + layer["bias"].reshape(-1, *[1] * (inputs.ndim - 1))


def _product(kernel: Any, inputs: Any, backend: ArrayOperations) -> Any:
    sums = backend.dot(kernel.T, inputs.reshape(len(kernel), -1))
    return sums.reshape(-1, *inputs.shape[1:])
