"""Folders in which commands run as a user's: the installed wheel, or a copy of the repository.

What the documents' commands need is made once, by real commands too: runs, a data set, a search.
"""

import functools
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from filelock import FileLock
from paths import CONFIGS, DOCS, DQN, FROG, HELPERS, LINEAR, ROOT
from quick_compilation import COMPILED_QUICKLY
from tpu_world import FLAGS, FakeGcloud

# What is compiled for these is that of the documented commands in their smallest size.
TINY = (
    "--num-envs 4 --num-steps 4 --num-minibatches 1 --update-epochs 1 --hidden-dim 8 "
    "--total-timesteps 800 --save-interval 20 --no-wandb"
)
EVALUATED = f"{TINY} --eval-interval 25 --eval-episodes 4"
CARTPOLE = """
environment: {name: CartPole-v1, num_envs: 4}
model: {hidden_sizes: [8, 8]}
training: {total_timesteps: 800, num_steps: 4, num_minibatches: 1, n_epochs: 1}
"""
BUILT_IN = ("scripted", "exit", "random")
SHIPPED = ROOT / "hackmatrix" / "agents" / "shipped" / "final_params"
OF_THE_TESTS = ("JAX_", "XLA_", "HACKMATRIX_", "PYTHON", "PYTEST_", "WANDB_", "VIRTUAL_ENV")


class Places:
    """A folder that all commands share; processes that need the same thing wait for its maker."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.cache = cache
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)

    def environment(self, binaries: Path) -> dict[str, str]:
        """A user's environment: none of what the tests set, and programs kept in one folder."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(OF_THE_TESTS)}
        home = self.cache / "home"  # with the key of the programs
        home.mkdir(exist_ok=True)
        return kept | {
            "HOME": str(home),
            "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
            "XDG_CACHE_HOME": str(self.cache),
            # Compiled for a single small run, as by the quick suite; what is run is the same.
            **COMPILED_QUICKLY,
            "BROWSER": "true",  # opens nothing
            "TERM": "xterm-256color",
        }

    def once(self, name: str, make: Callable[[Path], None]) -> Path:
        """The folder that `make` fills, for whoever asks for it first."""
        path = self.folder / name
        with FileLock(f"{path}.lock"):
            if not Path(f"{path}.made").exists():
                path.mkdir()
                make(path)
                Path(f"{path}.made").touch()
        return path

    def run(self, folder: Path, line: str) -> None:
        """Runs a line of this repository's environment in a folder."""
        environment = self.environment(ROOT / ".venv" / "bin")
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

    @functools.cached_property
    def wheel(self) -> Path:
        """Where the commands of the package are that was installed from its wheel."""
        return self.once("wheel", self._install_wheel) / "venv" / "bin"

    def _install_wheel(self, folder: Path) -> None:
        copy_of_the_repository(folder / "repository")
        python, venv = ROOT / ".venv" / "bin" / "python", folder / "venv"
        self.run(
            folder,
            f"{python} -m pip wheel -q --no-deps --no-build-isolation -w . ./repository"
            f" && {python} -m venv --without-pip {venv}"
            f" && {python} -m pip --python {venv} install -q --no-deps *.whl",
        )
        # The dependencies are those of the repository's environment, without the package there.
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        (venv / "lib" / version / "site-packages" / "dependencies.pth").write_text(
            f"{ROOT / '.venv' / 'lib' / version / 'site-packages'}\n"
        )

    @functools.cached_property
    def core(self) -> Path:
        """Where the commands are after `pip install` of the wheel alone, without any extra."""
        return self.once("core", self._install_core) / "venv" / "bin"

    def _install_core(self, folder: Path) -> None:
        python, venv = ROOT / ".venv" / "bin" / "python", folder / "venv"
        lines = (ROOT / "requirements.lock").read_text()
        pins = re.findall(r"^(\w.*==.*) \\$", lines, re.M)
        (folder / "versions.txt").write_text("\n".join(pins))
        self.run(
            folder,
            f"{python} -m venv --without-pip {venv} && {python} -m pip --python {venv} install -q "
            f"-c versions.txt {self.wheel.parent.parent}/*.whl",
        )

    @functools.cached_property
    def other_package(self) -> Path:
        """A folder with another package called `hackmatrix`."""

        def make(folder: Path) -> None:
            (folder / "hackmatrix").mkdir()
            (folder / "hackmatrix" / "__init__.py").write_text("raise RuntimeError('the other')\n")

        return self.once("other", make)

    def made(self, name: str) -> Path:
        """The folder of a run, a search, a data set, or a package of npm or Python."""
        makers = {
            "my-run": f"hackmatrix train {EVALUATED} --run-name my-run",
            "cart": f"hackmatrix train {TINY} --env CartPole-v1 --run-name cart",
            "ten": f"hackmatrix train {TINY} --env CartPole-v1 --num-seeds 4 --run-name ten",
            "three": f"hackmatrix train {TINY} --multi-task --task-list "
            "\"['CartPole-v1', 'Acrobot-v1', 'MountainCar-v0']\" --run-name three",
            "run-name": f"python {ROOT}/scripts/train_purejaxrl.py {TINY} --run-name run-name "
            "--total-timesteps 1600",
            "experiment": f"python {ROOT}/train.py --config my_experiment.yaml --seed 42 "
            "--no-wandb --output-dir experiments/my_experiment --profile --profile-step 1",
            "uv": "python -m pip install -q --target . uv",
            "pyodide": "npm install --silent --no-save pyodide",
            "frog": f"hackmatrix train {TINY} --env frog:Frog --run-name frog",
            "linear": f"hackmatrix train {TINY} --architecture linear:make --run-name linear",
            "agent-games": "hackmatrix data record agent-games --agent shipped --episodes 2 "
            "--max-steps 20",
            "tuning": "hackmatrix tune --config my.yaml --search-space space.yaml --num-trials 1 "
            "--num-seeds 1 --fresh-seeds 1",
        }

        def make(folder: Path) -> None:
            (folder / "my.yaml").write_text(CARTPOLE)
            (folder / "my_experiment.yaml").write_text(small_experiment())
            (folder / "space.yaml").write_text("training: {learning_rate: [1.0e-3, 2.0e-3]}\n")
            for example in (FROG, LINEAR):
                shutil.copy(example, folder)
            self.run(folder, makers[name])

        return self.once(name, make)

    def prepare(self, folder: Path, line: str) -> None:
        """Puts what a line reads into the folder in which it will run."""
        for run in set(
            re.findall(r"(?:checkpoints/|--resume-run |\bgs://my-bucket/runs/)([\w-]+)", line)
        ):
            on_cartpole = re.search(r"train --resume \S+(?<!npz) |reproduce|verify", f"{line} ")
            self._copy_run("cart" if on_cartpole else run, folder / "checkpoints" / run)
        if re.search(r"--latest|--log-dir|monitor$", line):
            self._copy_run("my-run", folder / "checkpoints" / "my-run")
        for path in set(re.findall(r"\btuning/cartpole/[\w/-]+", line)):
            self._copy_run("my-run", folder / path)
        if "tuning/my" in line:
            shutil.copytree(self.made("tuning") / "tuning", folder / "tuning")
        if re.search(r"(?:data (?:verify|export)|clone|--data) agent-games", line):
            shutil.copytree(self.made("agent-games") / "agent-games", folder / "agent-games")
        for name in set(re.findall(r"\b([\w-]+\.(?:npz|onnx|pkl|yaml|json|txt))\b", line)):
            self._make_file(folder / name, line)
        if "page --export" in line or "--pyodide" in line:
            (folder / "node_modules").symlink_to(self.made("pyodide") / "node_modules")
        if "--configs tiny" in line:
            (folder / "tiny").mkdir()
            for name in ("cartpole_best", "acrobot", "mountain_car"):
                text = (CONFIGS / f"{name}.yaml").read_text()
                small = re.sub(r"total_timesteps: \S+", "total_timesteps: 1", text)
                (folder / "tiny" / f"{name}.yaml").write_text(small)
        if re.search("compare .*--games", line):
            # Players of the package stand for the runs: theirs are the same columns, at once.
            agents = dict(zip(BUILT_IN, re.findall(r"checkpoints/[\w-]+", line), strict=True))
            games = "--episodes 2 --max-steps 20 --games games.csv"
            self.run(folder, f"hackmatrix evaluate {' '.join(agents)} {games}")
            rows = (folder / "games.csv").read_text()
            for player, run in agents.items():
                rows = re.sub(f"^{player},", f"{run},", rows, flags=re.M)
            (folder / "games.csv").write_text(rows)
        for example in (FROG, LINEAR, DQN):
            if f"{example.stem}:" in line:
                shutil.copy(example, folder)

    def _copy_run(self, name: str, to: Path) -> None:
        """Copies a run; `a-1` has another seed than `a-0`, and `b-0` other settings."""
        source = name if name in ("cart", "ten", "three", "frog", "linear") else "my-run"
        shutil.copytree(self.made(source) / "checkpoints" / source, to)
        if number := re.search(r"\d$", name):
            text = (to / "config.yaml").read_text().replace("seed: 0\n", f"seed: {number[0]}\n")
            gamma = re.search(r"gamma: (\S+)", text)
            assert gamma
            other = "gamma: 0.5" if name.startswith("b") else gamma[0]
            (to / "config.yaml").write_text(text.replace(gamma[0], other))

    def _make_file(self, path: Path, line: str) -> None:
        if path.suffix in (".npz", ".json") and re.search(
            rf"(?:evaluate|--resume|--init-from|--model) {path.name}", line
        ):
            # A network that learns on from others has their width and observation.
            params = SHIPPED if "--init-from" in line else self._params
            for suffix in (".npz", ".json"):
                shutil.copy(params.with_suffix(suffix), path.with_suffix(suffix))
        elif path.name == "agent.onnx":
            self.run(path.parent, f"hackmatrix checkpoint convert {SHIPPED}.npz agent.onnx")
        elif path.suffix == ".pkl":
            path.write_bytes(pickle.dumps(params_of_the_original()))
        elif path.name == "my-tpu.yaml":
            text = (CONFIGS / "tpu" / "spot_tpu.yaml").read_text()
            for theirs, ours in [("PROJECT", "project"), ("BUCKET", "bucket"), ("NAME", "name")]:
                text = text.replace(f"YOUR-{theirs}", f"my-{ours}")
            path.write_text(text)
        elif path.name == "space.yaml":
            path.write_text("training: {learning_rate: [1.0e-3, 2.0e-3]}\n")
        elif path.name == "my.yaml" and "--init-from" in line:
            shutil.copy(CONFIGS / "quick.yaml", path)
        elif path.name in ("my.yaml", "cartpole.yaml"):
            path.write_text(CARTPOLE)
        elif path.name == "game.json":
            game = json.loads((DOCS / "won.json").read_text())
            path.write_text(json.dumps(game | {"actions": game["actions"][:60]}))
        elif path.name == "position.txt":
            text = (DOCS / "planning.md").read_text()
            found = re.search(r"^X\. .*?^owned COL$", text, re.M | re.S)
            assert found
            path.write_text(found[0] + "\n")

    @property
    def _params(self) -> Path:
        return self.made("my-run") / "checkpoints" / "my-run" / "final_params"


def small_experiment() -> str:
    """The settings that the documents copy, for two updates."""
    text = (CONFIGS / "train_config.yaml").read_text()
    return text.replace("total_timesteps: 1000000", "total_timesteps: 2048")


def params_of_the_original() -> dict[str, object]:
    """Params as the original pickles them, of its network on 1,545 features."""
    rng = np.random.default_rng(0)
    sizes = {"Dense_0": (1545, 8), "Dense_1": (8, 8), "Dense_2": (8, 28), "Dense_3": (8, 1)}
    return {
        name: {
            "kernel": rng.normal(size=size).astype(np.float32),
            "bias": np.zeros(size[1], np.float32),
        }
        for name, size in sizes.items()
    }


def copy_of_the_repository(folder: Path) -> Path:
    """The files that git tracks or would track, and the native engine as it is built."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    built = [str(path.relative_to(ROOT)) for path in ROOT.glob("hackmatrix/game/native/*.so")]
    for name in [*listed.stdout.splitlines(), *built]:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def fake_gcloud(folder: Path) -> FakeGcloud:
    """A command `gcloud` in a new folder, which needs no Google; FAKE_GCLOUD names the folder."""
    folder.mkdir()
    shutil.copy(FLAGS, folder / "flags.json")
    script = folder / "gcloud"
    script.write_text(f"#!{sys.executable} -ISB\n{(HELPERS / 'fake_gcloud.py').read_text()}")
    script.chmod(0o755)
    return FakeGcloud(folder)
