"""An environment of one's own: its name, errors in its code, and what the commands do with it."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from paths import FROG, LINEAR

import hackmatrix
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import make_network
from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.environments.registry import environment_id, make_environment
from hackmatrix.runs.metrics_file import read_metrics
from hackmatrix.runs.params import save_params

pytestmark = pytest.mark.usefixtures("shared_programs")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder with the frog, as a console script sees it: modules come from elsewhere."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    # Python takes a file of the same size and second for the one that it has compiled.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.chdir(tmp_path)
    shutil.copy(FROG, tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def refusal(name: str, **options: Any) -> str:
    with pytest.raises(UserError) as error:
        make_environment(name, **options)
    told = str(error.value)
    assert told.startswith(f"environment {name}: ")
    assert "\n" not in told
    return told.removeprefix(f"environment {name}: ")


# --- the name ------------------------------------------------------------------------------------


def test_the_name_is_the_id() -> None:
    assert environment_id("games.pond:Frog.make") == "games.pond:Frog.make"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("games/pond.py:make", ", did you mean games.pond:make?"),
        ("pond.py:make", ", did you mean pond:make?"),
        ("my-games/pond.py:make", "; one of your own is module:function, such as my_game:make"),
        ("pond:", "; one of your own is module:function, such as my_game:make"),
        ("pond:make:it", "; one of your own is module:function, such as my_game:make"),
        ("pond:make()", "; one of your own is module:function, such as my_game:make"),
    ],
)
def test_a_name_that_is_spelt_wrong_is_refused(name: str, hint: str) -> None:
    with pytest.raises(UserError) as error:
        environment_id(name)
    assert str(error.value) == f"no environment is called {name!r}{hint}"


def test_modules_come_from_the_current_folder(folder: Path) -> None:
    (folder / "games").mkdir()
    shutil.copy(FROG, folder / "games" / "pond.py")
    for _ in range(2):
        assert type(make_environment("games.pond:Frog")).__module__ == "games.pond"
    assert sys.path[0] == str(folder)
    assert sys.path.count(str(folder)) == 1


def test_attributes_after_the_colon(folder: Path) -> None:
    text = (
        "import frog\nclass Games:\n    @staticmethod\n    def make():\n        return frog.Frog()"
    )
    (folder / "pond.py").write_text(text)
    assert make_environment("pond:Games.make").num_actions == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pond:make", "there is no module pond in the current folder or among installed packages"),
        ("frog:Forg", "frog.py has no Forg, did you mean Frog?"),
        ("frog:xyzzy", "frog.py has no xyzzy"),
        ("json:make", f"{json.__file__} has no make"),
        ("sys:xyzzy", "sys has no xyzzy"),
        ("frog:WIDTH", "WIDTH is not a function"),
        ("frog:Pond", "is called with no arguments: missing a required argument: 'pads'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_not_there_is_told(name: str, message: str) -> None:
    assert refusal(name) == message


def test_the_time_limit_is_given_only_where_there_is_one(folder: Path) -> None:
    text = "class Limited(Grid):\n    def __init__(self, **given):\n        self.given = given"
    (folder / "pond.py").write_text(f"from probe_environments import Grid\n{text}")
    assert make_environment("pond:Limited").given == {}
    limited = make_environment("pond:Limited", max_episode_steps=6)
    assert limited.given == {"max_episode_steps": 6}
    assert refusal("pond:Limited", max_episode_steps=9) == (
        "is made with max_episode_steps=9, and its member of that name is 6"
    )
    assert refusal("pond:Grid", max_episode_steps=6) == (
        "is called with max_episode_steps=6: got an unexpected keyword argument 'max_episode_steps'"
    )


# --- errors in the user's code -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nx = foo", "pond.py:2: NameError: name 'foo' is not defined"),
        ("x = 1\ny = (2", "pond.py:2: SyntaxError: '(' was never closed"),
        ("import xyzzy", "pond.py:1: ModuleNotFoundError: No module named 'xyzzy'"),
        ("import json\njson.loads('{')", "pond.py:2: JSONDecodeError: Expecting property name"),
        ("raise ValueError('a\\nb')", "pond.py:1: ValueError: a"),
        ("raise SystemExit(2)", "pond.py:1: SystemExit: 2"),
        ("import helper", "helper.py:3: KeyError: 'x'"),
        ("def make():\n    return 1 / 0", "pond.py:2: ZeroDivisionError: division by zero"),
        ("from hackmatrix.core.errors import UserError\nraise UserError('no gas')", "no gas"),
    ],
)
def test_errors_of_an_import_or_a_call_name_the_line(text: str, message: str, folder: Path) -> None:
    (folder / "pond.py").write_text(text)
    (folder / "helper.py").write_text("\n\n{}['x']\n")
    assert re.fullmatch(rf"{re.escape(message)}( .*)?", refusal("pond:make"))


HINT = r"; JAX computes all games at once: jnp.where instead of `if`, jnp instead of NumPy"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pond._replace(fog=1)", r"ValueError: Got unexpected field names: \['fog'\]"),
        ("jnp.ones(3) + jnp.ones(4)", r"TypeError: add got incompatible shapes .*"),
        ("1 if action > 2 else 2", rf"TracerBoolConversionError: Attempted .*{HINT}"),
        ("np.arange(4)[action]", rf"TracerArrayConversionError: The .*{HINT}"),
        ("[1, 2][action]", rf"TracerIntegerConversionError: The .*{HINT}"),
    ],
)
def test_errors_of_a_step_name_the_line(line: str, message: str, folder: Path) -> None:
    text = "import jax.numpy as jnp\nimport numpy as np\nfrom frog import Frog\n\n"
    text += f"class Mine(Frog):\n    def step(self, key, pond, action):\n        {line}\n"
    (folder / "pond.py").write_text(text)
    assert re.fullmatch(rf"step: pond.py:7: {message}", refusal("pond:Mine"))


# --- the commands --------------------------------------------------------------------------------

TINY = [
    *("--num-envs=16", "--num-steps=16", "--hidden-dim=16", "--log-interval=2"),
    *("--no-wandb", "--no-tensorboard"),
]
OWN = ("--env", "frog:Frog", "--architecture", "linear:make")


def run(*argv: str) -> None:
    assert main(["train", *argv, *TINY]) == 0


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    capsys.readouterr()
    assert main(list(argv)) == 2
    (told,) = capsys.readouterr().err.splitlines()
    return told


@pytest.mark.slow
def test_with_a_network_of_ones_own_it_is_trained_resumed_and_evaluated(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(LINEAR, folder)
    run(*OWN, "--total-timesteps", "1024", "--run-name", "whole")
    assert f"evaluate checkpoints/whole/final_params.npz {' '.join(OWN)}" in capsys.readouterr().out
    run(*OWN, "--total-timesteps", "512", "--run-name", "half")
    run("--resume", "checkpoints/half", *OWN, "--total-timesteps", "1024")
    wholes, halves = (np.load(f"checkpoints/{name}/final_params.npz") for name in ("whole", "half"))
    assert {name.rpartition(".")[0] for name in wholes} == {"params.Dense_0", "params.Dense_1"}
    assert all(np.array_equal(wholes[name], halves[name]) for name in wholes)

    row = list(read_metrics(Path("checkpoints/whole")))[-1]
    assert row["update"] == 4
    assert 1 < row["train/mean_episode_return"] <= 15
    assert 0 <= row["pond/won"] <= 1
    assert 1 < row["pond/choices"] < 4
    assert not any(name.startswith(("reward/", "actions/", "stats/")) for name in row)

    capsys.readouterr()
    assert main(["evaluate", "checkpoints/whole", *OWN, "--episodes", "50", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert 5 < told["mean_return"] == told["mean_length"] < 15
    low, high = told["win_rate_ci"]
    assert 0 <= low <= told["win_rate"] <= high <= 1
    assert told["truncated"] == 0
    names = {"env": OWN[1], "architecture": OWN[3]}
    report = hackmatrix.evaluate("checkpoints/whole", **names, episodes=50)
    assert report.means()["mean_return"] == told["mean_return"]

    # Another function is another environment.
    (folder / "pond.py").write_text("from frog import Frog")
    said = refused(capsys, "train", "--resume", "checkpoints/half", "--env", "pond:Frog", *OWN[2:])
    assert said.endswith("was trained on frog:Frog, not on pond:Frog")
    # Errors in its code are one line, and write nothing.
    del sys.modules["frog"]
    before = sorted(folder.rglob("*.npz"))
    (folder / "frog.py").write_text("import jax\n\nx = foo\n")
    for argv in (["train", *OWN, *TINY], ["evaluate", "checkpoints/whole", *OWN]):
        assert refused(capsys, *argv) == (
            f"hackmatrix {argv[0]}: error: environment frog:Frog: frog.py:3: NameError: "
            "name 'foo' is not defined"
        )
    assert sorted(folder.rglob("*.npz")) == before


def test_params_that_do_not_fit_any_more_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = make_network(make_environment("frog:Frog"), NetworkConfig(hidden_dim=16))
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    params = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
    facts = {"environment": "frog:Frog", "config": {**NetworkConfig(hidden_dim=16).__dict__}}
    save_params(folder / "x.npz", params, facts)
    del sys.modules["frog"]
    text = FROG.read_text().replace("(4, 4)", "(5, 5)").replace("WIDTH = 6", "WIDTH = 7")
    (folder / "frog.py").write_text(text)
    assert refused(capsys, "evaluate", "x.npz", "--env", "frog:Frog").endswith(
        "params.Dense_0.kernel is [72, 16], the network mlp for frog:Frog wants [98, 16]"
    )
