"""A network of one's own: what the commands do with it, and errors in its code."""

import json
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
from hackmatrix.cli.main import main
from hackmatrix.core import named_code
from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config import TrainConfig

OWN = ("--architecture", "linear:make")
ADD = "linear:make, code that runs only if you say so by --architecture linear:make"
TINY = [
    *("--env=CartPole-v1", "--num-envs=8", "--num-steps=8", "--log-interval=2"),
    *("--no-wandb", "--no-tensorboard"),
]

pytestmark = pytest.mark.usefixtures("folder")


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


@pytest.mark.thorough
def test_it_is_trained_resumed_and_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    train(*OWN, "--total-timesteps", "256", "--run-name", "whole")
    assert f"evaluate checkpoints/whole/final_params.npz {' '.join(OWN)}" in capsys.readouterr().out
    train(*OWN, "--total-timesteps", "128", "--run-name", "half")
    train(*OWN, "--total-timesteps", "256", "--resume", "checkpoints/half")
    wholes, halves = (np.load(f"checkpoints/{name}/final_params.npz") for name in ("whole", "half"))
    assert {name.rpartition(".")[0] for name in wholes} == {"params.Dense_0", "params.Dense_1"}
    assert all(np.array_equal(wholes[name], halves[name]) for name in wholes)

    capsys.readouterr()
    assert main(["evaluate", "checkpoints/whole", *OWN, "--episodes", "9", "--json"]) == 0
    mean = json.loads(capsys.readouterr().out)["mean_return"]
    assert 8 < mean < 200
    report = hackmatrix.evaluate("checkpoints/whole", architecture=OWN[1], episodes=9)
    assert report.means()["mean_return"] == mean


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


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in checkpoints/run; its module would say so, were it imported once more."""
    train(*OWN, "--total-timesteps", "64", "--run-name", "run")
    forget(monkeypatch)
    del sys.modules["linear"]
    (folder / "linear.py").write_text("raise ValueError('linear.py was run')\n")
    (folder / "position.txt").write_text(hackmatrix.Game.new(1).to_text())


@pytest.mark.thorough
@pytest.mark.usefixtures("run")
def test_code_that_only_a_file_names_is_not_run(capsys: pytest.CaptureFixture[str]) -> None:
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


@pytest.mark.thorough
@pytest.mark.parametrize(
    "line",
    [
        "train --resume checkpoints/run --total-timesteps 128",
        "train --config checkpoints/run/config.yaml --run-name new",
        "evaluate checkpoints/run",
        "checkpoint verify checkpoints/run",
        "reproduce checkpoints/run",
    ],
)
@pytest.mark.usefixtures("run")
def test_code_that_a_flag_names_is_run(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*line.split(), *OWN]) in (1, 2)
    said = capsys.readouterr()
    assert "linear.py:1: ValueError: linear.py was run" in said.err + said.out


@pytest.mark.thorough
def test_a_session_asks_it_of_a_position(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hackmatrix.agents.roster.position_policies import load
    from hackmatrix.game.engine.observation import observe

    game = ("--env=HackMatrix", "--observation=tactical", "--total-timesteps=64")
    train(*game, *OWN, "--run-name=x")
    record = observe(hackmatrix.Game.new(1).state)
    logits, value = load(Path("checkpoints/x/final_params.npz"))(record, ())  # type: ignore[operator]
    assert len(logits) == 28
    assert np.isfinite([*logits, value]).all()
    forget(monkeypatch)
    assert ADD in refused(capsys, "watch", "checkpoints/x", "--no-open")


ERRORS = {
    "no:make": "there is no module no in the current folder or among installed packages",
    "linear:mak": "linear.py has no mak, did you mean make?",
    "linear:Linear": "TypeError: ",
    "broken:raises": "broken.py:2: ZeroDivisionError: division by zero",
    "broken:nothing": "NoneType has no num_actions, recurrent, reads_features, init",
    "broken:few": "the logits must be float32[2, 2], is float32[2, 1]",
    "broken:memory": "name a class with the attribute recurrent = True",
}
BROKEN = """\
def raises(env, config):
    1 / 0
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


@pytest.mark.slow
def test_one_with_a_memory_is_named_by_its_class(folder: Path) -> None:
    text = (HELPERS / "memory_network.py").read_text()
    (folder / "mine.py").write_text(text.replace("size: int = 16", "config: object"))
    text = (folder / "mine.py").read_text().replace("num_actions, size)", "num_actions, 16)")
    (folder / "mine.py").write_text(text)
    own = ("--architecture", "mine:MemoryNetwork")
    train(*own, "--total-timesteps", "64", "--run-name", "x")
    assert TrainConfig.of(architecture=own[1]).network.recurrent
    assert main(["evaluate", "checkpoints/x", *own, "--episodes", "2"]) == 0


def test_its_value_is_a_chance_where_that_is_asked_for() -> None:
    named_code.allow("linear:make")
    env = hackmatrix.make("CartPole-v1")
    networks = {
        value: make_network(env, NetworkConfig("linear:make", value=value))
        for value in ("return", "chance")
    }
    params = networks["return"].init(jax.random.key(0))
    observations = 10 * jax.random.normal(jax.random.key(1), (50, 4))
    _, returns, _ = networks["return"](params, observations, ())
    _, chances, _ = networks["chance"](params, observations, ())
    np.testing.assert_allclose(chances, jax.nn.sigmoid(returns), rtol=1e-6)
