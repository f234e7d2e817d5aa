"""Reads and writes params by the ending of a file's name."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.agents.networks.cells_forward import EPSILON
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import write_atomically
from hackmatrix.core.imports import need
from hackmatrix.runs.names import PICKLES
from hackmatrix.runs.params import (
    FORMAT,
    Exported,
    flat,
    load_params,
    params_from_arrays,
    save_params,
)

# --- Params as a `.safetensors` file, with their facts as a text in its metadata ------------------


_FACTS = "hackmatrix"  # the key of the facts


def read_safetensors(path: Path) -> Exported:
    """Reads a file of `write_safetensors`, or arrays of the same names from another program.

    Raises:
        UserError: it can't be read, or holds something else.
    """
    need("safetensors")
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            about = json.loads((file.metadata() or {}).get(_FACTS, "{}"))
    except (SafetensorError, OSError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"{path}: is no .safetensors file, or a damaged one ({reason})") from None
    return params_from_arrays(path, arrays, about)


def write_safetensors(path: Path, params: dict[str, Any], about: dict[str, Any]) -> None:
    """Writes params and their facts; see `hackmatrix.runs.params.save_params`."""
    need("safetensors")
    from safetensors.numpy import save

    write_atomically(path, save(dict(flat(params)), metadata={_FACTS: json.dumps(about)}))


# --- The network `mlp` as an ONNX file: features in, logits and value out -------------------------
#
# The params are its initializers, under their names, and the facts a text in its metadata, so that
# the file can be converted back.


FEATURES, LOGITS, VALUE = "features", "logits", "value"
_OPSET, _IR = 17, 8  # of 2022: old runtimes read them
_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh"}
_ABOUT = (
    "features float32[N, F] as Environment.features makes them -> logits float32[N, A] over all "
    "actions, to be masked by the valid ones, and value float32[N]"
)


def write_onnx(path: Path, params: dict[str, Any], about: dict[str, Any]) -> None:
    """Writes the network as a checked ONNX model.

    Raises:
        UserError: the network is not `mlp`, or its params are not those of one.
    """
    need("onnx")
    import onnx

    model = _model(path, params, about)
    onnx.checker.check_model(model, full_check=True)
    write_atomically(path, model.SerializeToString())


def read_onnx(path: Path) -> Exported:
    """Reads the params of a file of `write_onnx`; nothing of the model is run.

    Raises:
        UserError: it can't be read, or holds something else.
    """
    need("onnx")
    import onnx

    try:
        model = onnx.load_model_from_string(path.read_bytes())
        arrays = {}
        for tensor in model.graph.initializer:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                raise UserError(f"{path}: keeps {tensor.name} in another file, which is not read")
            if tensor.name.startswith("params."):
                arrays[tensor.name] = onnx.numpy_helper.to_array(tensor)
        facts = {each.key: each.value for each in model.metadata_props}
        about = json.loads(facts.get(_FACTS, "{}"))
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # protobuf and onnx raise many kinds
        reason = " ".join(str(error).split())[:120]
        raise UserError(f"{path}: is no ONNX file, or a damaged one ({reason})") from None
    if not arrays:
        raise UserError(f"{path}: is an ONNX model, but none of hackmatrix: it holds no params.")
    return params_from_arrays(path, arrays, about)


def _model(path: Path, params: dict[str, Any], about: dict[str, Any]) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    settings = about.get("config", {})
    architecture = settings.get("architecture", "mlp")
    if architecture != "mlp":
        raise UserError(f"{path}: only the network mlp is written as ONNX, this is {architecture}")
    layers = params.get("params", {})
    names = [f"Dense_{i}" for i in range(sum(name.startswith("Dense_") for name in layers))]
    norms = [f"LayerNorm_{i}" for i in range(len(names) - 2)]
    has_norms = "LayerNorm_0" in layers
    if len(names) < 3 or set(layers) != {*names, *(norms if has_norms else ())}:
        raise UserError(f"{path}: these are no params of the network mlp, which ONNX is written of")
    activation = _ACTIVATIONS[settings.get("activation", "relu")]
    nodes, last = [], FEATURES
    for name, norm in zip(names, norms, strict=False):
        sums = f"{name}.sum"
        nodes += [_dense(name, last, sums)]
        if has_norms:
            nodes += [_layer_norm(norm, sums)]
            sums = norm
        nodes += [helper.make_node(activation, [sums], [name])]
        last = name
    nodes += [_dense(names[-2], last, LOGITS), _dense(names[-1], last, "value.column")]
    value = "value.logit" if settings.get("value") == "chance" else VALUE
    nodes += [helper.make_node("Squeeze", ["value.column", "value.axis"], [value])]
    if value != VALUE:
        nodes += [helper.make_node("Sigmoid", [value], [VALUE])]
    arrays = {name: np.asarray(array, np.float32) for name, array in flat(params)}
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    tensors.append(numpy_helper.from_array(np.array([1], np.int64), "value.axis"))
    size, actions = layers["Dense_0"]["kernel"].shape[0], layers[names[-2]]["bias"].shape[0]

    def info(name: str, *shape: str | int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        nodes,
        "hackmatrix",
        [info(FEATURES, "N", size)],
        [info(LOGITS, "N", actions), info(VALUE, "N")],
        tensors,
        doc_string=_ABOUT,
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="hackmatrix")
    model.ir_version = _IR
    helper.set_model_props(model, {_FACTS: json.dumps(about)})
    return model


def _dense(name: str, before: str, after: str) -> Any:
    from onnx import helper

    layer = f"params.{name}"
    return helper.make_node("Gemm", [before, f"{layer}.kernel", f"{layer}.bias"], [after])


def _layer_norm(name: str, before: str) -> Any:
    from onnx import helper

    inputs = [before, f"params.{name}.scale", f"params.{name}.bias"]
    return helper.make_node("LayerNormalization", inputs, [name], epsilon=EPSILON)


# --- Reads and writes params by the ending of a file's name ---------------------------------------


Write = Callable[[Path, dict[str, Any], dict[str, Any]], None]


class Format(NamedTuple):
    """The reader and the writer, if there is one, of files with an ending."""

    read: Callable[[Path], Exported]
    write: Write | None


FORMATS = {
    ".npz": Format(load_params, save_params),
    ".safetensors": Format(read_safetensors, write_safetensors),
    ".onnx": Format(read_onnx, write_onnx),
    **dict.fromkeys(PICKLES, Format(load_params, None)),
}
WRITTEN = [ending for ending, each in FORMATS.items() if each.write is not None]


def read_params(path: Path) -> Exported:
    """Reads a file of params.

    Raises:
        UserError: it can't be read, is damaged, or has an unknown ending.
    """
    if path.suffix not in FORMATS:
        raise UserError(f"{path}: is read if it ends in {', '.join(FORMATS)}")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    return FORMATS[path.suffix].read(path)


def write_params(path: Path, params: dict[str, Any], about: dict[str, Any]) -> None:
    """Writes a new file of params with their facts.

    Raises:
        UserError: there is such a file already, its ending is not written, or the network can't be
            written in this format.
    """
    check_new(path)
    write = FORMATS[path.suffix].write
    assert write is not None
    write(path, params, {"format": FORMAT, **about})


def check_new(path: Path) -> None:
    """Raises `UserError` if a file of params can't be written there."""
    if path.suffix not in WRITTEN:
        raise UserError(f"{path}: is written if it ends in {', '.join(WRITTEN)}")
    beside = [path.with_suffix(".json")] if path.suffix == ".npz" else []
    for file in (path, *beside):
        if os.path.lexists(file):
            raise UserError(f"{file}: exists already: choose another name")
    if not path.parent.is_dir():
        raise UserError(f"{path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path}: no file can be written into {path.parent}")
