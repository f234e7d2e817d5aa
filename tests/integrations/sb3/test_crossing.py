"""Models cross both ways between `hackmatrix sb3` and programs that know sb3-contrib alone."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("sb3_contrib")

import torch
from sb3_contrib import MaskablePPO

from hackmatrix.cli import main as cli

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning"),
    pytest.mark.filterwarnings("error::UserWarning"),
    pytest.mark.timeout(300),
]
SHORT = ["--n-steps", "64", "--batch-size", "32", "--no-wandb", "--eval-freq", "0"]
# A program that knows nothing of this package: the spaces of the original, and games of noise.
STRANGER = """\
import sys, warnings
sys.modules["hackmatrix"] = None  # its import fails
warnings.simplefilter("error", UserWarning)
import gymnasium, numpy as np, torch
from gymnasium.spaces import Box, Dict, Discrete
from sb3_contrib import MaskablePPO

torch.set_num_threads(1)
original = {
    "player": Box(0.0, 1.0, (10,), np.float32),
    "programs": Box(0, 1, (23,), np.int32),
    "grid": Box(0.0, 1.0, (6, 6, 42), np.float32),
}

class Game(gymnasium.Env):
    def __init__(self, **others):
        self.observation_space, self.action_space = Dict(original | others), Discrete(28)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 1.0, False, False, {}

    def action_masks(self):
        return np.ones(28, bool)

"""
SAVES = """\
def save(name, env, **settings):
    model = MaskablePPO("MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=1,
                        policy_kwargs={"net_arch": {"pi": [32], "vf": [32]}}, **settings)
    model.learn(64)
    model.save(name)

def falling(left):
    return 3e-4 * left

save("original", Game())
save("functions", Game(), learning_rate=falling, clip_range=falling)
save("bounds", Game(player=Box(0.0, 3276.7, (10,), np.float32)))
"""
LOADS = """\
for path in sys.argv[1:]:
    model = MaskablePPO.load(path, env=Game())
    model.learn(64, reset_num_timesteps=False)
    print(model.num_timesteps)
model = MaskablePPO.load("tactical.zip")
print(model.lr_schedule(1.0), model.lr_schedule(0.5), model.lr_schedule(0.0))
"""


@pytest.fixture(autouse=True)
def one_thread_and_our_binary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    monkeypatch.delenv("HACKMATRIX_BINARY", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def stranger(program: str, *words: str, folder: Path) -> str:
    command = [sys.executable, "-c", STRANGER + program, *words]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models as the original writes them."""
    folder = tmp_path_factory.mktemp("theirs")
    stranger(SAVES, folder=folder)
    return folder


def train(models: str, *flags: str) -> Path:
    assert (
        cli.main(["sb3", "train", *SHORT, "--model-dir", models, "--timesteps", "64", *flags]) == 0
    )
    (model,) = Path(models).glob("*/final_model.zip")
    return model


@pytest.mark.parametrize("name", ["functions", "bounds"])
def test_a_model_of_the_original_plays_and_goes_on(
    theirs: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With bounds of an older version, too: they say nothing of what is observed."""
    path = str(theirs / f"{name}.zip")
    assert cli.main(["sb3", "watch", path, "--episodes", "1", "--max-steps", "5"]) == 0
    assert "\nmean: " in capsys.readouterr().out
    model = MaskablePPO.load(train("models", "--resume", path))
    assert f"continues {path} after 64 steps" in capsys.readouterr().out
    assert model.num_timesteps == 128
    assert model.policy_kwargs["net_arch"] == {"pi": [32], "vf": [32]}


def test_models_of_ours_go_on_where_this_package_is_not(theirs: Path, tmp_path: Path) -> None:
    ours = [train("new"), train("resumed", "--resume", str(theirs / "original.zip"))]
    flags = ["--preset", "tactical", "--backend", "python", "--num-envs", "1"]
    train("tactical", *flags).rename("tactical.zip")
    told = stranger(LOADS, *map(str, ours), folder=tmp_path)
    assert told.splitlines() == ["128", "192", "0.001 0.0005 0.0"]
