"""Command lines with gs:// paths: which folder they mean here, and what is said if it fails."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from bucket_runs import PREFIX, RUN, add_checkpoint, add_rows, go_on, make_run, put_run, stored
from fake_bucket import LEFT_SOCKETS, FakeBucket, Fault, emulated
from garbage import only_new_garbage
from made_runs import make_run as make_trained

from hackmatrix.cli.main import main
from hackmatrix.learning.run.location import RunLocation
from hackmatrix.runs.bucket import Address
from hackmatrix.runs.buckets import lease, mirror
from hackmatrix.runs.buckets.plan import home_of, write_home
from hackmatrix.runs.names import next_name

pytestmark = pytest.mark.filterwarnings(LEFT_SOCKETS)

RUNS = Address("my-bucket", "runs")
HERE = Path("checkpoints/my-bucket/runs")
URL = "gs://my-bucket/runs"
PARAMS = f"{URL}/x/final_params.npz"
GOES_ON = RunLocation(RUNS, RUNS / "x", None, RUNS / "x", HERE / "x", goes_on=True)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeBucket]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(lease, "SECONDS", 1.0)
    monkeypatch.setattr(lease, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(mirror, "LOOK_SECONDS", 0.05)
    with only_new_garbage(), emulated(monkeypatch) as bucket:
        yield bucket


# --- what a command line means --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        ({}, {}, RunLocation()),
        ({"checkpoint_dir": Path("runs")}, {"resume": "runs/x"}, RunLocation()),
        ({"checkpoint_dir": Path(URL)}, {}, RunLocation(RUNS)),
        (
            {"checkpoint_dir": Path(URL)},
            {"run_name": "x", "run_suffix": "large"},
            RunLocation(RUNS, target=RUNS / "x-large", folder=HERE / "x-large"),
        ),
        ({}, {"output_dir": Path(URL) / "x"}, RunLocation(target=RUNS / "x", folder=HERE / "x")),
        ({"checkpoint_dir": Path(URL)}, {"resume": f"{URL}/x"}, GOES_ON),
        ({}, {"resume": f"{URL}/x/checkpoints/20", "rewind": True}, GOES_ON),
        ({"checkpoint_dir": Path(URL)}, {"resume_run": "x"}, GOES_ON),
        ({}, {"resume": f"{URL}/x", "run_name": "x"}, GOES_ON),
        (
            {},
            {"resume": f"{URL}/x", "run_name": "y"},
            RunLocation(RUNS, RUNS / "x", None, RUNS / "y", HERE / "y"),
        ),
        (
            {"checkpoint_dir": Path("runs")},
            {"resume": f"{URL}/x", "run_name": "x"},
            RunLocation(None, RUNS / "x"),
        ),
        ({}, {"resume": PARAMS}, RunLocation(None, None, RUNS / "x/final_params.npz")),
    ],
)
def test_where_runs_are(
    settings: dict[str, Any], options: dict[str, Any], expected: RunLocation
) -> None:
    assert RunLocation.of(settings, options) == expected


def test_a_folder_here_remembers_its_bucket(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x", 20)
    write_home(run, RUNS / "x")
    expected = RunLocation(target=RUNS / "x", folder=run, goes_on=True)
    for named in (run, run / "checkpoints", run / "checkpoints" / "20"):
        assert RunLocation.of({}, {"resume": str(named)}) == expected
    for other in ({"run_suffix": "y"}, {"run_name": "y"}, {"output_dir": tmp_path / "y"}):
        assert RunLocation.of({}, {"resume": str(run), **other}) == RunLocation()
    assert RunLocation.of({}, {"resume": str(run / "params_20.npz")}) == RunLocation()
    copy = run.rename(tmp_path / "copy")
    assert RunLocation.of({}, {"resume": str(copy)}) == RunLocation()


def test_folders_here_stand_for_those_in_buckets() -> None:
    flags, options = {"checkpoint_dir": Path(URL)}, {"output_dir": Path(URL) / "x"}
    location = RunLocation.of(flags, options)
    assert location.localise(flags, options) == (
        {"checkpoint_dir": HERE},
        {"output_dir": HERE / "x"},
    )


# --- training, without training -------------------------------------------------------------------


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """In place of training a run is made or continued; what was asked for."""
    from hackmatrix.cli import train

    asked: list[tuple[Any, ...]] = []

    def instead(config: Any, options: Any, start: Any, *_: Any) -> Any:
        from hackmatrix.learning.run.loop import End, RunOutcome

        asked.append((config, options, start))
        named = "-".join(filter(None, (options.run_name, options.run_suffix)))
        run = options.output_dir or config.run.checkpoint_dir / named
        if start.is_beginning:
            make_run(run, 20)
        else:
            run = start.run
            (run / ".lock").touch()
            add_rows(run, start.update + 10)
            add_checkpoint(run, start.update + 10)
        return RunOutcome(run, 30, 30, End.FINISHED, None, None, None)

    monkeypatch.setattr(train, "_train", instead)
    return asked


def fails(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code, and the line on stderr."""
    code = main(argv)
    (line,) = [x for x in capsys.readouterr().err.splitlines() if ": error: " in x]
    return code, line.partition(": error: ")[2]


def test_a_run_is_trained_here_and_goes_to_its_bucket(
    fake: FakeBucket, trained: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--checkpoint-dir", URL, "--run-name", "mine"]) == 0
    assert trained[0][0].run.checkpoint_dir == HERE
    assert home_of(HERE / "mine") == RUN
    assert f"what is in {HERE}/mine is mirrored to {RUN}" in capsys.readouterr().out
    assert "checkpoints/20/manifest.json" in stored(fake)
    assert f"{PREFIX}lease.json" not in fake.objects


@pytest.mark.usefixtures("trained")
def test_a_run_gets_a_name_that_is_free_there_and_here(fake: FakeBucket) -> None:
    words = ["train", "--checkpoint-dir", URL, "--run-suffix", "large"]
    name = next_name([], date.today())
    fake.put(f"runs/{name}-other/config.yaml", b"")
    assert main(words) == 0
    second = name.removesuffix("1") + "2"
    assert [path.name for path in HERE.iterdir()] == [f"{second}-large"]
    (HERE / f"{name.removesuffix('1')}7").mkdir()
    assert main(words) == 0
    assert (HERE / f"{name.removesuffix('1')}8-large").exists()


def test_a_run_that_is_in_the_bucket_is_not_overwritten(
    fake: FakeBucket, trained: list[tuple[Any, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    fake.put(f"{PREFIX}config.yaml", b"")
    for words in (["--checkpoint-dir", URL, "--run-name", "mine"], ["--output-dir", f"{URL}/mine"]):
        code, line = fails(["train", *words], capsys)
        assert code == 2
        assert line == (
            "the run gs://my-bucket/runs/mine exists: choose another --run-name, or "
            "--resume gs://my-bucket/runs/mine"
        )
    assert trained == []
    assert stored(fake) == {"config.yaml": b""}
    del fake.objects[f"{PREFIX}config.yaml"]
    make_run(HERE / "mine", 20)
    code, line = fails(["train", "--checkpoint-dir", URL, "--run-name", "mine"], capsys)
    assert (code, line.partition(":")[0]) == (2, f"the run {HERE}/mine exists")
    assert fake.names() == []


def test_a_run_goes_on_from_its_bucket(
    fake: FakeBucket, trained: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    put_run(fake, make_run(tmp_path / "there", 20))
    assert main(["train", "--resume", f"{URL}/mine", "--checkpoint-dir", URL]) == 0
    source = trained[0][2]
    assert (source.run, source.update) == (HERE / "mine", 20)
    assert "checkpoints/30/manifest.json" in stored(fake)
    assert main(["train", "--checkpoint-dir", URL, "--resume-run", "mine", "--no-wandb"]) == 0
    assert trained[1][2].update == 30

    run = HERE / "mine"  # goes on from what its bucket has on top of it
    shutil.rmtree(run)
    write_home(make_run(run, 20), RUN)
    assert main(["train", "--resume", str(run)]) == 0
    assert trained[2][2].update == 40
    assert "checkpoints/50/manifest.json" in stored(fake)


def test_a_run_that_went_on_both_here_and_there_is_refused(
    fake: FakeBucket,
    trained: list[tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    run, there = make_run(HERE / "mine", 20), make_run(tmp_path / "there", 20)
    write_home(go_on(run, "one", 30), RUN)
    put_run(fake, go_on(there, "another", 30, 40))
    before = stored(fake)
    for named in (str(run), f"{URL}/mine"):
        code, line = fails(["train", "--resume", named], capsys)
        assert code == 2
        assert line.startswith(f"{run} (update 30) and {URL}/mine (update 40) are not the same run")
    assert trained == []
    assert stored(fake) == before

    assert main(["train", "--resume", str(run), "--rewind"]) == 0
    assert trained[0][2].update == 30
    assert stored(fake)["checkpoints/30/arrays/d"] == b"arrays of one, 30"
    assert stored(fake)["checkpoints/40/arrays/d"] == b"arrays of 40"


def test_another_trainer_of_the_run_is_refused(
    fake: FakeBucket,
    trained: list[tuple[Any, ...]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hackmatrix.runs.bucket import Bucket

    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.1)
    put_run(fake, make_run(tmp_path / "there", 20))
    other = lease.take_lease(Bucket(RUN, patience=5), print)
    code, line = fails(["train", "--resume", f"{URL}/mine"], capsys)
    assert code == 2
    assert line.startswith("gs://my-bucket/runs/mine is being trained by ")
    assert trained == []
    assert not HERE.exists()
    other.release()


def test_what_can_not_be_uploaded_is_an_exit_code_of_its_own(
    fake: FakeBucket, trained: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "END_SECONDS", 0.2)
    monkeypatch.setattr(mirror, "_QUIET_SECONDS", 0.1)
    monkeypatch.setattr("hackmatrix.learning.run.location.PATIENCE", 0.3)
    fake.faults = [Fault("503", 1000, "POST", "manifest")]
    assert main(["train", "--checkpoint-dir", URL, "--run-name", "mine"]) == 75
    assert (HERE / "mine" / "checkpoints" / "20").is_dir()
    assert "checkpoints/20/manifest.json" not in stored(fake)
    assert len(trained) == 1


def test_a_bucket_that_does_not_answer_ends_the_command_soon(
    fake: FakeBucket, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hackmatrix.learning.run.location.FIRST_PATIENCE", 0.3)
    monkeypatch.setattr("hackmatrix.runs.buckets.cache.FIRST_PATIENCE", 0.3)
    fake.is_down = True
    code, line = fails(["train", "--checkpoint-dir", URL, "--run-name", "mine"], capsys)
    assert code == 75
    assert line.startswith("gs://my-bucket/runs/mine/config.yaml: no answer: ")
    code, line = fails(["evaluate", f"{URL}/mine"], capsys)
    assert code == 1
    assert line.startswith("gs://my-bucket/runs/mine: no answer: ")


@pytest.mark.parametrize("words", [["--resume", "gs://another/mine"], []])
def test_a_bucket_that_is_not_there_is_told(
    fake: FakeBucket, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert fake is not None
    code, line = fails(["train", "--checkpoint-dir", "gs://another", *words], capsys)
    assert (code, line) == (2, "gs://another: there is no such bucket")


def test_print_config_asks_no_bucket(fake: FakeBucket) -> None:
    assert main(["train", "--checkpoint-dir", URL, "--print-config"]) == 0
    assert fake.calls == []


# --- commands that read ---------------------------------------------------------------------------


def rewards(steps: float) -> float:
    return steps / 1e6


def test_monitor_shows_runs_of_a_bucket(
    fake: FakeBucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_run(fake, make_trained(tmp_path / "mine", rewards))
    for words in ([f"{URL}/mine"], [URL], ["--log-dir", URL]):
        assert main(["monitor", "--once", *words]) == 0
        assert "mine" in capsys.readouterr().out


def test_compare_reads_groups_of_a_bucket(
    fake: FakeBucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seed in (("a-0", 0), ("a-1", 1)):
        put_run(fake, make_trained(tmp_path / name, rewards, seeds=(seed,)), f"runs/{name}/")
    local = make_trained(tmp_path / "b-0", rewards, lr=1e-3)
    words = [f"old={URL}/a-0,{URL}/a-1", f"new={local}"]
    assert main(["compare", "--json", *words]) == 0
    assert set(json.loads(capsys.readouterr().out)["groups"][0]) >= {"name"}


def test_checkpoint_lists_and_verifies_runs_of_a_bucket(
    fake: FakeBucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_run(fake, make_run(tmp_path / "mine", 20))
    assert main(["checkpoint", "list", "--json", f"{URL}/mine"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["checkpoints"][:1]
    assert "mine/checkpoints/20" in str(row)
    fake.put(f"{PREFIX}checkpoints/20/arrays/d", b"arrays of 21")
    assert main(["checkpoint", "verify", "--no-evaluate", f"{URL}/mine/checkpoints/20"]) == 1


@pytest.mark.parametrize(
    "command",
    [
        lambda run: ["evaluate", run],
        lambda run: ["watch", run],
        lambda run: ["watch", "--latest", "--checkpoint-dir", run.rpartition("/")[0]],
        lambda run: ["page", "--export", "site", "--agent", run],
        lambda run: ["monitor", "--once", run],
        lambda run: ["compare", run],
        lambda run: ["checkpoint", "convert", run, "x.npz"],
    ],
)
def test_what_is_not_in_the_bucket_is_told_by_its_address(
    fake: FakeBucket, command: Callable[[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert fake is not None
    code, line = fails(command("gs://my-bucket/nowhere/x"), capsys)
    assert code == 2
    assert "gs://my-bucket/nowhere" in line


def test_agents_of_a_bucket_are_read_from_a_copy(
    fake: FakeBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hackmatrix.agents import shipped

    params = Path(str(shipped.PARAMS))
    fake.put(f"{PREFIX}final_params.npz", params.read_bytes())
    fake.put(f"{PREFIX}final_params.json", params.with_suffix(".json").read_bytes())
    cast: list[Any] = []
    monkeypatch.setattr("hackmatrix.cli.watch.show_page", lambda *given: cast.append(given) or 0)
    copy = tmp_path / "cache" / "hackmatrix" / "buckets" / "my-bucket" / "runs" / "mine"
    for words in (
        [f"{URL}/mine"],
        [f"{URL}/mine/final_params.npz"],
        ["--run", f"{URL}/mine"],
        ["--latest", "--checkpoint-dir", URL],
    ):
        assert main(["watch", *words]) == 0
        assert (copy / "final_params.npz").read_bytes() == params.read_bytes()
    assert len(cast) == 4
