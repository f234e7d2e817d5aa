"""A recipe of CONTRIBUTING.md takes changes of exactly the files that its row names."""

import json
from pathlib import Path

import pytest
from patched_package import Edits, files_of_recipe, patched_package, run_patched
from paths import HELPERS

METRIC: Edits = {
    "environments/hackmatrix/metric_table.py": [
        (
            '    Metric(\n        "stats/programs_owned",',
            '    Metric("stats/up_frac", Over.STEPS, "fraction of actions that go up"),\n',
        )
    ],
    "environments/hackmatrix/env.py": [
        ('        "stats/win_rate": info', '        "stats/up_frac": action == 0,\n')
    ],
}
PROGRAM: Edits = {
    "game/rules/programs.py": [
        (")\n\n\nclass ProgramId", '    Program("PATCH", 1, 0, 1),\n'),
        ("\n\nPROGRAM_INDEX = {", "    PATCH = 23\n"),
    ],
    "game/engine/programs.py": [
        (
            "        case ProgramId.ATK_PLUS:",
            "        case ProgramId.PATCH:\n            player.hp += 1\n",
        ),
        (
            "    ProgramId.HACK: lambda state: any(",
            "    ProgramId.PATCH: lambda state: state.player.hp < PLAYER_HP,\n",
        ),
    ],
    "game/jaxgame/programs.py": [
        (
            "        ProgramId.HACK: cells.siphoned",
            "        ProgramId.PATCH: player.hp < PLAYER_HP,\n",
        ),
        (",\n            energy=saturate(player.energy", " + (program == ProgramId.PATCH)"),
    ],
    "game/drawing/shapes.py": [("}\n\nSHAPES =", '    "PATCH": _filled(_CROSS),\n')],
    "ui/session/descriptions.py": [
        ("}\n\n# Keys", '    "PATCH": ("Restores 1 hp.", "your hp is full"),\n'),
    ],
}
TINY = (
    *("--num-envs", "4", "--num-steps", "4", "--num-minibatches", "1", "--update-epochs", "1"),
    *("--total-timesteps", "32", "--hidden-dim", "8", "--log-interval", "1", "--no-wandb"),
    *("--no-tensorboard", "--run-name", "run"),
)
PLAY = HELPERS / "patched_game.py"


@pytest.mark.parametrize(
    ("row", "edits"), [("a metric of HackMatrix", METRIC), ("a program of the game", PROGRAM)]
)
def test_the_files_are_those_that_the_table_names(row: str, edits: Edits) -> None:
    assert files_of_recipe(row) == set(edits)


def test_a_new_program_is_played_shown_and_observed(tmp_path: Path) -> None:
    run_patched(patched_package(tmp_path, PROGRAM), PLAY)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_both_engines_play_a_new_program_alike(tmp_path: Path) -> None:
    run_patched(patched_package(tmp_path, PROGRAM), PLAY, "jax")


@pytest.mark.slow
def test_a_new_metric_is_measured_in_training(tmp_path: Path) -> None:
    folder = patched_package(tmp_path, METRIC)
    run_patched(folder, "-m", "hackmatrix", "train", *TINY)
    (metrics,) = folder.glob("**/metrics.jsonl")
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    values = [row["stats/up_frac"] for row in rows if "stats/up_frac" in row]
    assert values
    assert min(values) >= 0
