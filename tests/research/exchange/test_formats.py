"""Params go from format to format and stay as they are."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
from safetensors.numpy import save_file

from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.research.exchange import formats
from hackmatrix.research.exchange.formats import WRITTEN, read_params, write_params
from hackmatrix.runs.params import flat, save_params

FEATURES, ACTIONS = 5, 3


def network(
    activation: str = "relu", *, layer_norm: bool = False
) -> tuple[ActorCritic, dict[str, Any]]:
    rng = np.random.default_rng(0)
    sizes = [(FEATURES, 4), (4, 4), (4, ACTIONS), (4, 1)]
    layers = {
        f"Dense_{i}": {
            "kernel": rng.normal(size=size).astype(np.float32),
            "bias": rng.normal(size=size[1]).astype(np.float32),
        }
        for i, size in enumerate(sizes)
    }
    if layer_norm:
        layers["Dense_0"]["bias"][:] = 0  # sums of little variance, where epsilon counts
        for i in range(2):
            scale, bias = rng.normal(size=(2, 4)).astype(np.float32)
            layers[f"LayerNorm_{i}"] = {"scale": scale, "bias": bias}
    module = ActorCritic(
        ACTIONS, hidden_dim=4, num_layers=2, activation=activation, layer_norm=layer_norm
    )
    return module, {"params": layers}


def about(**settings: Any) -> dict[str, Any]:
    return {"format": 1, "update": 7, "config": {"architecture": "mlp", **settings}}


def test_through_every_format_and_back_nothing_changes(tmp_path: Path) -> None:
    _, params = network()
    path = tmp_path / "params_7.npz"
    save_params(path, params, about())
    last = read_params(path)
    for step, ending in enumerate([*WRITTEN, *WRITTEN[::-1]]):
        path = tmp_path / f"{step}{ending}"
        write_params(path, last.params, last.about)
        last = read_params(path)
        assert last.about == about()
        found = dict(flat(last.params))
        for name, array in flat(params):
            np.testing.assert_array_equal(found.pop(name), array)
        assert not found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("activation", "layer_norm", "value"),
    [("relu", True, "return"), ("tanh", False, "chance")],
)
def test_the_onnx_model_answers_as_the_network_does(
    activation: str, layer_norm: bool, value: str, tmp_path: Path
) -> None:
    module, params = network(activation, layer_norm=layer_norm)
    path = tmp_path / "agent.onnx"
    write_params(path, params, about(activation=activation, layer_norm=layer_norm, value=value))
    features = np.random.default_rng(0).normal(size=(6, FEATURES)).astype(np.float32)
    features[0] *= 1e-3
    logits, values = module.apply(params, features)
    values = values if value == "return" else 1 / (1 + np.exp(-values))
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    found = onnx.reference.ReferenceEvaluator(model).run(None, {formats.FEATURES: features})
    rtol = 1e-6 if layer_norm else 1e-7
    np.testing.assert_allclose(found[0], logits, atol=1e-6, rtol=rtol)
    np.testing.assert_allclose(found[1], values, atol=1e-6, rtol=rtol)


@pytest.mark.parametrize("ending", WRITTEN)
def test_files_that_are_damaged_or_of_others_are_refused(ending: str, tmp_path: Path) -> None:
    _, params = network()
    path = tmp_path / f"agent{ending}"
    write_params(path, params, about())
    whole = path.read_bytes()
    for damaged in (b"", b"abc", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(damaged)
        with pytest.raises(UserError) as raised:
            read_params(path)
        assert str(raised.value).startswith(f"{path}: ")
        assert "\n" not in str(raised.value)


def test_an_onnx_file_that_points_to_another_file_is_refused(tmp_path: Path) -> None:
    _, params = network()
    path = tmp_path / "agent.onnx"
    write_params(path, params, about())
    model = onnx.load(path)
    onnx.external_data_helper.convert_model_to_external_data(model, location="elsewhere")
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    path.write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match="in another file, which is not read"):
        read_params(path)


def test_facts_nested_without_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.safetensors"
    save_file({"a": np.zeros(1, np.float32)}, path, {"hackmatrix": "[" * 100_000})
    with pytest.raises(UserError, match=r"is no \.safetensors file, or a damaged one"):
        read_params(path)


def test_only_an_mlp_is_written_as_onnx(tmp_path: Path) -> None:
    _, params = network()
    path = tmp_path / "agent.onnx"
    with pytest.raises(UserError, match="only the network mlp is written as ONNX, this is other"):
        write_params(path, params, about(architecture="other"))
    with pytest.raises(UserError, match="these are no params of the network mlp"):
        write_params(path, {"params": {**params["params"], "LayerNorm_0": {}}}, about())
    assert not path.exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nowhere.npz", "new.onnx"], "nowhere.npz: there is no such file or folder"),
        (["params_7.npz", "new.pt"], "is written if it ends in .npz, .safetensors, .onnx"),
        (["params_7.npz", "params_7.npz"], "exists already"),
        (["params_7.npz", "nowhere/new.onnx"], "there is no folder nowhere"),
        (["params_7.npz", "new.onnx", "--agent", "1"], "has 1, numbered from 0 on"),
        (["agent.pt", "new.npz"], "is read if it ends in .npz"),
        (["params_7.npz", "mine.npz"], "mine.json: exists already"),
    ],
)
def test_what_can_not_be_converted_is_refused_in_one_line(
    argv: list[str], message: str, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    _, params = network()
    save_params(Path("params_7.npz"), params, about())
    Path("agent.pt").write_bytes(b"PK")
    Path("mine.json").write_text("mine")
    before = Path("params_7.npz").read_bytes()
    assert main(["checkpoint", "convert", *argv]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert Path("params_7.npz").read_bytes() == before
    there = {path.name for path in tmp_path.iterdir()}
    assert there == {"params_7.npz", "params_7.json", "agent.pt", "mine.json"}


def test_the_extra_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"needs onnx: pip install 'hackmatrix\[exchange\]'"):
        write_params(tmp_path / "agent.onnx", {}, {})
