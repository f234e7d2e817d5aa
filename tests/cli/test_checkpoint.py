"""The command `hackmatrix checkpoint` on a run of a tiny environment."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import probe_environments as probes
import pytest
import small_runs

from hackmatrix import ENVIRONMENT_ID
from hackmatrix.cli.main import main
from hackmatrix.environments.registry import MAKERS
from hackmatrix.research.evaluation.jax_agents import make_evaluate
from hackmatrix.runs.params import flat, load_params

pytestmark = pytest.mark.thorough

Said = dict[str, Any]


@pytest.fixture(autouse=True)
def _grid_in_place_of_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MAKERS, ENVIRONMENT_ID, lambda: lambda **_: probes.Grid())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two agents with normalised features, evaluated."""
    outcome = small_runs.run_of(
        tmp_path_factory.mktemp("runs"),
        make_evaluate=make_evaluate,
        num_seeds=2,
        seed=3,
        normalize_observations=True,
        eval_interval=3,
        eval_episodes=16,
        save_interval=3,
    )
    return outcome.run


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "mine"))


def verified(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, Said]:
    code = main(["checkpoint", "verify", *map(str, argv), "--json"])
    said: Said = json.loads(capsys.readouterr().out)
    return code, said


def results(said: Said, path: Path) -> dict[str, bool | None]:
    return {check["name"]: check["passed"] for check in said["checks"][str(path)]}


def test_a_whole_run_passes_and_its_evaluation_is_played_again(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = verified(capsys, run)
    assert code == 0
    assert said["passed"]
    best = run / "checkpoints" / "3"
    assert results(said, best) == {
        "checksums": True,
        "shapes": True,
        "finite": True,
        **{
            f"{name} {k}": True
            for k in (0, 1)
            for name in ("network", "forward pass", "evaluation")
        },
    }
    texts = [check["text"] for check in said["checks"][str(best)] if "eval" in check["name"]]
    assert all(text.endswith("in 16 games, as recorded") for text in texts)
    assert results(said, run / "seed_4" / "best_params.npz")["evaluation"] is True


def test_damage_of_each_kind_is_found(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flipped = copy / "checkpoints" / "3"
    file = max((p for p in flipped.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    by_its_old_name = copy / "checkpoint_3.pt"
    code, said = verified(capsys, by_its_old_name, "--no-evaluate")
    assert code == 1
    assert results(said, flipped) == {"checksums": False}

    path = copy / "seed_3" / "final_params.npz"
    arrays = dict(np.load(path))
    arrays["params.Dense_0.kernel"][0, 0] = np.nan
    np.savez(path, **arrays)
    code, said = verified(capsys, path)
    assert (code, results(said, path)) == (1, {"read": False})

    arrays["params.Dense_0.kernel"] = np.zeros((7, 8), np.float32)
    np.savez(path, **arrays)
    code, said = verified(capsys, path)
    assert (code, results(said, path)) == (1, {"read": True, "network": False})


def test_params_of_another_agent_do_not_reach_the_recorded_evaluation(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy / "seed_3" / "best_params.npz"
    about = json.loads(path.with_suffix(".json").read_text())
    about["evaluation"]["mean_return"] = 100.0
    path.with_suffix(".json").write_text(json.dumps(about))
    code, said = verified(capsys, path)
    assert code == 1
    (check,) = (each for each in said["checks"][str(path)] if each["name"] == "evaluation")
    assert check["text"].endswith("recorded 100: not its params")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"evaluation": {"mean_return": "many"}}, "the recorded one has no mean_return"),
        ({"config": {"eval_episodes": "x"}}, "its settings: eval_episodes of the resumed run must"),
        ({"config": {"env": "CartPole-v1"}}, "its settings are of CartPole-v1"),
    ],
)
def test_facts_of_another_program_are_a_failed_check(
    changes: dict[str, Any], message: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy / "seed_3" / "best_params.npz"
    about = json.loads(path.with_suffix(".json").read_text())
    config = about["config"] | changes.pop("config", {})
    path.with_suffix(".json").write_text(json.dumps(about | changes | {"config": config}))
    code, said = verified(capsys, path)
    assert code == 1
    (check,) = (each for each in said["checks"][str(path)] if each["passed"] is False)
    assert check["text"].startswith(message)


@pytest.mark.parametrize(
    "facts", ['{"update": "x"}', '{"update": [1], "timesteps": "y"}', "[" * 100_000]
)
def test_odd_facts_are_listed(facts: str, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / "seed_3" / "best_params.json").write_text(facts)
    assert main(["checkpoint", "list", str(copy)]) == 0
    assert "best_params.npz" in capsys.readouterr().out


def test_the_code_of_an_environment_is_run_only_if_it_is_named(
    copy: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = copy / "seed_3" / "final_params.npz"
    facts = params.with_suffix(".json")
    facts.write_text(json.dumps(json.loads(facts.read_text()) | {"environment": "strange:make"}))
    proof = tmp_path / "it-ran"
    (tmp_path / "strange.py").write_text(f"import pathlib\npathlib.Path({str(proof)!r}).touch()\n")
    monkeypatch.chdir(tmp_path)
    code, said = verified(capsys, params)
    assert code == 0
    assert results(said, params) == {"read": True, "network": None}
    assert not proof.exists()
    code, said = verified(capsys, params, "--env", "strange:make")
    assert proof.exists()
    assert code == 1
    assert results(said, params)["network"] is False  # there is no strange:make


def test_the_list_names_each_with_its_update_and_marks_the_best(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["checkpoint", "list", str(run), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["checkpoints"]
    updates = {row["path"].removeprefix(f"{run}/"): row["update"] for row in rows}
    assert updates["checkpoints/7"] == updates["seed_3/final_params.npz"] == 7
    assert [row["best"] for row in rows].count(True) == 1
    assert main(["checkpoint", "list", str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(rows) + 1
    assert any(line.endswith(", the best") for line in lines)


def test_of_a_folder_of_runs_all_are_listed(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(copy, copy.parent / "trials" / "other")
    (copy.parent / "just-begun").mkdir()
    rows: dict[Path, list[Said]] = {}
    (copy.parent / "stray.npz").touch()
    for folder in (copy, copy.parent / "trials", copy.parent):
        assert main(["checkpoint", "list", str(folder), "--json"]) == 0
        rows[folder] = json.loads(capsys.readouterr().out)["checkpoints"]
        assert [row["best"] for row in rows[folder]].count(True) == 1
    first, second, search = rows.values()
    assert len(first) == len(second)
    assert search == second  # the folder of a search means its trials
    shutil.move(copy.parent / "trials" / "other", copy.parent)
    (copy.parent / "trials").rmdir()
    assert main(["checkpoint", "list", str(copy.parent), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["checkpoints"]) == 2 * len(first)


def test_the_params_of_a_checkpoint_are_those_that_its_run_exported(
    run: Path, tmp_path: Path
) -> None:
    # The normalisation of features is folded into the first layer, as in the exported params.
    for k in (0, 1):
        target = tmp_path / f"{k}.safetensors"
        argv = ["checkpoint", "convert", str(run / "checkpoints" / "7"), str(target)]
        assert main([*argv, "--agent", str(k)]) == 0
        back = tmp_path / f"{k}.npz"
        assert main(["checkpoint", "convert", str(target), str(back)]) == 0
        expected = load_params(run / f"seed_{3 + k}" / "final_params.npz")
        found = load_params(back)
        assert found.about["config"]["seed"] == 3 + k
        for (name, array), (other, ours) in zip(
            flat(expected.params), flat(found.params), strict=True
        ):
            assert name == other
            np.testing.assert_allclose(ours, array, rtol=1e-6)


def test_params_whose_card_can_not_be_written_do_not_stay(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ending = ".safetensors"
    longest = 255 - len(f".saving-{ending}-{os.getpid()}")  # without the .md of the card
    target = tmp_path / ("a" * longest + ending)
    argv = ["checkpoint", "convert", str(run / "checkpoints" / "7"), str(target), "--agent", "0"]
    assert main(argv) == 1
    assert "File name too long" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "expected one of list, verify, convert, got ''"),
        (["verify", "nowhere"], "nowhere: there is no such file or folder"),
        (["convert", "a.npz", "a.onnx", "--int8"], "a.onnx: --int8 is for files that end in .npz"),
        (["list", "."], "holds neither checkpoints nor files of params"),
    ],
)
def test_wrong_paths_are_refused_in_one_line(
    argv: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["checkpoint", *argv]) == 2
    assert message in capsys.readouterr().err
