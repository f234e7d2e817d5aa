"""New things take changes of exactly the files that CONTRIBUTING.md names, and then work.

A program of the game has a file of its own, `test_new_program.py`; environments have
`tests/environments/test_own_environment.py`.
"""

import json
from pathlib import Path

import pytest
from patched_package import Edits, files_of_recipe, patched_package, run_patched

SUBCOMMAND: Edits = {
    "cli/greet.py": [
        (
            "",
            '"""`hackmatrix greet`."""\n\n\n'
            "def main(argv: list[str]) -> int:\n"
            '    print("hello", *argv)\n'
            "    return 0\n",
        )
    ],
    "cli/main.py": [("}\n\n\ndef main(", '    "greet": Command("greet", "say hello"),\n')],
}
PLAYER: Edits = {
    "agents/roster/built_in.py": [
        (
            "BUILT_IN = {",
            "def _last_action(record: bytes, mask: Sequence[bool]) -> int:\n"
            "    return max(action for action, valid in enumerate(mask) if valid)\n\n\n"
            'def _last(state: "State", forbidden: Collection[int]) -> int:\n'
            "    from hackmatrix.game.engine.actions import valid_actions\n\n"
            "    valid = valid_actions(state)\n"
            "    return max({*valid} - {*forbidden} or valid)\n\n\n",
        ),
        (
            "}\n\n\ndef built_in_agents",
            '    "last": BuiltIn(partial(_certain, _last_action), _last),\n',
        ),
    ]
}
TRACKER: Edits = {
    "runs/trackers/lines.py": [
        (
            "",
            "from hackmatrix.runs.trackers.tracker import TrackedRun\n\n\n"
            "class Lines:\n"
            '    name = "lines"\n\n'
            "    def __init__(self, run: TrackedRun) -> None:\n"
            '        self.path = run.folder / "lines.txt"\n\n'
            "    def start(self, say):\n"
            "        pass\n\n"
            "    def log(self, update, timesteps, row, when):\n"
            '        with self.path.open("a") as file:\n'
            '            print(update, row["loss"], file=file)\n\n'
            "    def alarm(self, update, name, message):\n"
            "        pass\n\n"
            "    def artifact(self, update, files):\n"
            "        pass\n\n"
            "    def finish(self, failed):\n"
            "        pass\n",
        )
    ],
    "runs/trackers/fan_out.py": [
        ("\n# Keys are the settings", "from hackmatrix.runs.trackers.lines import Lines\n"),
        ("}\n\n\nclass Trackers", '    "lines": Lines,\n'),
    ],
}
SWITCHED: Edits = {
    "learning/reporting/config.py": [
        ("    wandb: bool", '    lines: bool = option(True, "write lines", compiled=False)\n')
    ],
    "learning/settings/config.py": [("wandb project entity", "lines ")],
}
FORMAT: Edits = {
    "research/exchange/json_file.py": [
        (
            "",
            "import json\n\n"
            "import numpy as np\n\n"
            "from hackmatrix.runs.params import exported, flat\n\n\n"
            "def read_json(path):\n"
            "    data = json.loads(path.read_text())\n"
            '    arrays = {k: np.array(v, np.float32) for k, v in data["params"].items()}\n'
            '    return exported(path, arrays, data["about"])\n\n\n'
            "def write_json(path, params, about):\n"
            "    arrays = {name: array.tolist() for name, array in flat(params)}\n"
            '    path.write_text(json.dumps({"params": arrays, "about": about}))\n',
        )
    ],
    "research/exchange/formats.py": [
        (
            "from hackmatrix.research.exchange.onnx_file",
            "from hackmatrix.research.exchange.json_file import read_json, write_json\n",
        ),
        ("    **dict.fromkeys(PICKLES", '    ".json5": Format(read_json, write_json),\n'),
    ],
}
NETWORK: Edits = {
    "agents/networks/linear.py": [
        (
            "",
            "import flax.linen as nn\n\n"
            "from hackmatrix.agents.networks.feature_network import FeatureNetwork\n"
            "from hackmatrix.agents.networks.mlp import Dense\n\n\n"
            "def make(env, config):\n"
            "    return FeatureNetwork(env, Linear(env.num_actions), reads_features=False)\n\n\n"
            "class Linear(nn.Module):\n"
            "    num_actions: int\n\n"
            "    @nn.compact\n"
            "    def __call__(self, features):\n"
            "        logits = Dense(self.num_actions, 0.01, features.dtype)(features)\n"
            "        return logits, Dense(1, 1.0, features.dtype)(features)[..., 0]\n",
        )
    ],
    "agents/networks/architectures.py": [
        (
            "    MULTI_TASK: Architecture(",
            '    "linear": Architecture("hackmatrix.agents.networks.linear", recurrent=False),\n',
        )
    ],
}
METRIC: Edits = {
    "environments/hackmatrix/metric_table.py": [
        (
            '    Metric(\n        "stats/programs_owned",',
            '    Metric("stats/up_frac", Over.STEPS, "fraction of actions that go up"),\n',
        )
    ],
    "environments/hackmatrix/step_metrics.py": [
        ('        "stats/win_rate": info', '        "stats/up_frac": action == 0,\n')
    ],
}
RECIPES = {
    "a subcommand": SUBCOMMAND,
    "a built-in player": PLAYER,
    "a tracker": TRACKER,
    "- that can be switched off": SWITCHED,
    "a format of params": FORMAT,
    "a network": NETWORK,
    "a metric of HackMatrix": METRIC,
}

TINY = (
    *("--num-envs", "4", "--num-steps", "4", "--num-minibatches", "1", "--update-epochs", "1"),
    *("--total-timesteps", "32", "--hidden-dim", "8", "--log-interval", "1", "--no-wandb"),
    *("--no-tensorboard", "--run-name", "run"),
)


@pytest.mark.parametrize("row", RECIPES)
def test_the_files_are_those_that_the_table_names(row: str) -> None:
    # A name in capitals stands for the new file's.
    named = {name.replace("NAME", "*") for name in files_of_recipe(row)}
    changed = [Path(name) for name in RECIPES[row]]
    assert all(any(file.match(name) for name in named) for file in changed)
    assert all(any(file.match(name) for file in changed) for name in named)


def test_a_subcommand(tmp_path: Path) -> None:
    folder = patched_package(tmp_path, SUBCOMMAND)
    assert run_patched(folder, "-m", "hackmatrix", "greet", "you") == "hello you\n"
    assert "say hello" in run_patched(folder, "-m", "hackmatrix", "--help")


def test_a_built_in_player(tmp_path: Path) -> None:
    folder = patched_package(tmp_path, PLAYER)
    small = ("--episodes", "2", "--max-steps", "5", "--json")
    text = run_patched(folder, "-m", "hackmatrix", "evaluate", "last", *small)
    assert json.loads(text)["episodes"] == 2


def test_a_tracker(tmp_path: Path) -> None:
    folder = patched_package(tmp_path, TRACKER)
    code = (
        "from pathlib import Path\n"
        "from hackmatrix.runs.trackers.fan_out import Trackers\n"
        "from hackmatrix.runs.trackers.tracker import TrackedRun\n"
        "config = {'tensorboard': False, 'wandb': False}\n"
        "with Trackers.open(TrackedRun(Path(), config), print) as trackers:\n"
        "    trackers.log(3, 30, {'loss': 0.5})\n"
    )
    assert run_patched(folder, "-c", code) == ""
    assert (folder / "lines.txt").read_text() == "3 0.5\n"


def test_a_tracker_that_can_be_switched_off(tmp_path: Path) -> None:
    folder = patched_package(tmp_path, {**TRACKER, **SWITCHED})
    train = ("-m", "hackmatrix", "train", "--print-config")
    assert "lines: true" in run_patched(folder, *train)
    assert "lines: false" in run_patched(folder, *train, "--no-lines")


def test_a_format_of_params(tmp_path: Path) -> None:
    folder = patched_package(tmp_path, FORMAT)
    params = folder / "hackmatrix" / "agents" / "shipped" / "final_params.npz"
    convert = ("-m", "hackmatrix", "checkpoint", "convert")
    run_patched(folder, *convert, params, "there.json5")
    run_patched(folder, *convert, "there.json5", "back.npz")
    assert (folder / "back.npz").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "flags", "metric"),
    [
        (NETWORK, ("--architecture", "linear"), "train/entropy"),
        (METRIC, (), "stats/up_frac"),
    ],
    ids=["network", "metric"],
)
def test_it_is_trained_with(
    recipe: Edits, flags: tuple[str, ...], metric: str, tmp_path: Path
) -> None:
    folder = patched_package(tmp_path, recipe)
    run_patched(folder, "-m", "hackmatrix", "train", *TINY, *flags)
    (metrics,) = folder.glob("**/metrics.jsonl")
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    values = [row[metric] for row in rows if metric in row]  # evaluations have rows of their own
    assert values
    assert min(values) >= 0
