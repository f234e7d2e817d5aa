"""A network of one's own: what the commands do with it, and errors in its code."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest
from paths import HELPERS, LINEAR

import hackmatrix
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import make_network
from hackmatrix.agents.roster.position_policies import load
from hackmatrix.cli.main import main
from hackmatrix.core import named_code
from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.runs.params import save_params

OWN = ("--architecture", "linear:make")
ADD = "linear:make, code that runs only if you say so by --architecture linear:make"
TINY = [
    *("--env=CartPole-v1", "--num-envs=8", "--num-steps=8", "--log-interval=2"),
    *("--no-wandb", "--no-tensorboard"),
]

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("folder")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with the example, as a console script sees it; nothing is named yet."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.chdir(tmp_path)
    shutil.copy(LINEAR, tmp_path)
    forget(monkeypatch)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process, in which no flag has named code."""
    monkeypatch.setattr(named_code, "_allowed", set())


def train(*argv: str) -> None:
    assert main(["train", *TINY, *argv]) == 0


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    capsys.readouterr()
    assert main(list(argv)) == 2
    (told,) = capsys.readouterr().err.splitlines()
    return told


NAMED = {
    "train --resume checkpoints/run": f"checkpoints/run: its network is {ADD}",
    "train --config checkpoints/run/config.yaml": f"config.yaml: its network is {ADD}",
    "train --resume checkpoints/run --architecture mlp": (
        "architecture was linear:make in the checkpoint and is mlp now"
    ),
    "train --env CartPole-v1 --init-from checkpoints/run/final_params.npz": (
        f"final_params.json: its network is {ADD}"
    ),
    "evaluate checkpoints/run": f"final_params.json: its network is {ADD}",
    "evaluate checkpoints/run --architecture os:getcwd": f"final_params.json: its network is {ADD}",
    "watch checkpoints/run --no-open": f"final_params.json: its network is {ADD}",
    "data record new --agent checkpoints/run": f"final_params.json: its network is {ADD}",
    "analyse position.txt checkpoints/run": f"final_params.json: its network is {ADD}",
    "reproduce checkpoints/run": f"checkpoints/run: its network is {ADD}",
    "clone data new.npz --config checkpoints/run/config.yaml": f"config.yaml: its network is {ADD}",
    "tune --config checkpoints/run/config.yaml": f"config.yaml: its network is {ADD}",
}


NAMING = [
    "train --resume checkpoints/run --total-timesteps 128",
    "train --config checkpoints/run/config.yaml --run-name new",
    "evaluate checkpoints/run",
    "checkpoint verify checkpoints/run",
    "reproduce checkpoints/run",
]


@pytest.mark.slow
def test_code_that_only_a_file_names_is_not_run_and_what_a_flag_names_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The module of a run in checkpoints/run says so, were it imported once more."""
    train(*OWN, "--total-timesteps", "64", "--run-name", "run")
    forget(monkeypatch)
    del sys.modules["linear"]
    (folder / "linear.py").write_text("raise ValueError('linear.py was run')\n")
    (folder / "position.txt").write_text(hackmatrix.Game.new(1).to_text())
    for line, said in NAMED.items():
        assert said in refused(capsys, *line.split()), line
    with pytest.raises(UserError, match=f"its network is {ADD}"):
        hackmatrix.load_agent("checkpoints/run")
    with pytest.raises(UserError, match=f"its network is {ADD}"):
        hackmatrix.train(config="checkpoints/run/config.yaml")
    assert main(["checkpoint", "verify", "checkpoints/run"]) == 1
    said = capsys.readouterr()
    assert ADD in said.out + said.err
    assert "linear" not in sys.modules

    for line in NAMING:
        forget(monkeypatch)
        assert main([*line.split(), *OWN]) in (1, 2)
        told = capsys.readouterr()
        assert "linear.py:1: ValueError: linear.py was run" in told.err + told.out


@pytest.mark.thorough
def test_a_session_asks_it_of_a_position(folder: Path) -> None:
    named_code.allow("linear:make")
    config = NetworkConfig("linear:make")
    network = make_network(hackmatrix.make(layout="tactical"), config)
    params = jax.device_get(jax.jit(network.init)(jax.random.key(0)))
    facts = {**config.__dict__, "observation": "tactical"}
    save_params(folder / "x.npz", params, {"environment": "HackMatrix-v1", "config": facts})
    record = hackmatrix.Game.new(1).observation()
    logits, value = load(folder / "x.npz")(record, ())  # type: ignore[operator]
    assert len(logits) == 28
    assert np.isfinite([*logits, value]).all()


ERRORS = {
    "linear:mak": "linear.py has no mak, did you mean make?",
    "linear:Linear": "TypeError: ",
    "broken:nothing": "NoneType has no num_actions, recurrent, reads_features, init",
    "broken:few": "the logits must be float32[2, 2], is float32[2, 1]",
    "broken:memory": "name a class with the attribute recurrent = True",
}
BROKEN = """\
def nothing(env, config):
    pass
def few(env, config):
    from linear import FeatureNetwork, Linear
    return FeatureNetwork(env, Linear(1), reads_features=False)
def memory(env, config):
    from memory_network import MemoryNetwork
    return MemoryNetwork(env)
"""


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_line_and_leave_nothing(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.py").write_text(BROKEN)
    told = refused(capsys, "train", *TINY, "--architecture", name)
    assert told.startswith(f"hackmatrix train: error: network {name}: ")
    assert ERRORS[name] in told
    assert not (folder / "checkpoints").exists()


def test_a_name_that_is_spelt_wrong_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    names = "mlp, separate_critic, cells, player_centred, gru, multi_task, module:function"
    for name in ("mpl", "./linear.py:make", "linear.py:make"):
        told = refused(capsys, "train", "--architecture", name)
        assert f"must be one of {names}, got '{name}'" in told


def test_one_with_a_memory_is_named_by_its_class(folder: Path) -> None:
    text = (HELPERS / "memory_network.py").read_text()
    text = text.replace("size: int = 16", "config: object").replace(
        "actions, size)", "actions, 16)"
    )
    (folder / "mine.py").write_text(text)
    named_code.allow("mine:MemoryNetwork")
    config = TrainConfig.of(architecture="mine:MemoryNetwork").network
    assert config.recurrent
    assert make_network(hackmatrix.make("CartPole-v1"), config).recurrent


def test_its_value_is_a_chance_where_that_is_asked_for() -> None:
    named_code.allow("linear:make")
    env = hackmatrix.make("CartPole-v1")
    networks = {
        value: make_network(env, NetworkConfig("linear:make", value=value))
        for value in ("return", "chance")
    }
    observations = 10 * jax.random.normal(jax.random.key(1), (50, 4))

    @jax.jit
    def values(key: jax.Array) -> list[jax.Array]:
        params = networks["return"].init(key)
        return [network(params, observations, ())[1] for network in networks.values()]

    returns, chances = values(jax.random.key(0))
    np.testing.assert_allclose(chances, jax.nn.sigmoid(returns), rtol=1e-6)
