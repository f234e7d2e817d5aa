"""`hackmatrix tpu` as a user meets it: help, errors of one line, exit codes."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tpu_world import FakeGcloud, GcloudInProcess

from hackmatrix.cli.main import main
from hackmatrix.cli.tpu import SUBCOMMANDS
from hackmatrix.cloud.tpu.description import read_description
from hackmatrix.cloud.tpu.gcloud import CommandResult, Gcloud

GIVEN = {
    "name": "mine",
    "project": "hack-matrix",
    "zone": "us-central2-b",
    "type": "v4-8",
    "bucket": "gs://my-bucket",
    "repo": "https://github.com/me/hackmatrix.git",
    "train": "--num-envs 256",
}
Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """Writes a description with changes; None leaves a key out."""

    def write(**changes: Any) -> str:
        path = tmp_path / "my-tpu.yaml"
        settings = {name: text for name, text in {**GIVEN, **changes}.items() if text is not None}
        path.write_text("".join(f"{name}: {json.dumps(text)}\n" for name, text in settings.items()))
        return str(path)

    return write


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str]) -> Called:
    def call(*words: str) -> tuple[int, str, str]:
        try:
            code = main(["tpu", *words])
        except SystemExit as ended:  # after --help
            code = int(ended.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def gcloud(gcloud: FakeGcloud, monkeypatch: pytest.MonkeyPatch) -> FakeGcloud:
    """It answers in this process, which is much faster than in one for each call."""

    class Here(GcloudInProcess):
        folder = gcloud.folder

        def run(self, argv: list[str], **how: Any) -> CommandResult:
            return Gcloud.run(self, argv) if self.dry_run else super().run(argv, **how)

        def show(self, argv: list[str], *, terminal: bool = False) -> CommandResult:
            assert self.dry_run or not terminal
            result = self.run(argv)
            sys.stdout.write(result.out)
            sys.stderr.write(result.err)
            return result

    monkeypatch.setattr("hackmatrix.cli.tpu.Gcloud", Here)
    return gcloud


def test_help_lists_every_subcommand(called: Called) -> None:
    code, out, _ = called("--help")
    assert code == 0
    for name, command in SUBCOMMANDS.items():
        assert f"  {name:<7} {command.purpose}" in out
        assert called(name, "--help")[0] == 0
    assert max(map(len, out.splitlines())) <= 100


def test_help_is_quick_because_it_imports_no_jax() -> None:
    code = "import sys; from hackmatrix.cli.main import main; main(['tpu', '--help']); "
    code += "sys.exit(bool({'jax', 'numpy', 'flax'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"project": None}, "project is missing"),
        ({"project": "YOUR-PROJECT"}, "project must be the id of a project"),
        ({"zone": "mars"}, "zone must be a zone, such as us-central2-b, got 'mars'"),
        ({"type": "v4-9"}, "type v4-9: there is none of this size"),
        ({"name": "My TPU"}, "name must be up to 50 small letters"),
        ({"bucket": "s3://x"}, "bucket must be as gs://my-bucket"),
        ({"bucket": "gs://b$(reboot)"}, "bucket must be as gs://my-bucket"),
        ({"branch": "--upload-pack=x"}, "branch must be the name of a branch"),
        ({"repo": "https://me:token@github.com/me/x.git"}, "repo holds a name or password"),
        ({"repo": "ext::sh -c reboot"}, "repo must be as https://github.com/NAME"),
        ({"end_date": "tomorrow"}, "end_date must be a day, as 2026-12-31"),
        ({"price": -1}, "price must be at least 0"),
        ({"spot": "yes"}, "spot must be true or false"),
        ({"zones": "x"}, "unknown key 'zones', did you mean zone?"),
        ({"train": "--num-envz 2"}, "train: unknown argument --num-envz, did you mean --num-envs?"),
        ({"train": "--num-envs two"}, "train: argument --num-envs"),
        ({"train": "--resume x"}, "train: --resume follows from name, type and bucket"),
        ({"secrets": "nope.env"}, "secrets: there is no file nope.env"),
        ({"train": "--entity 'x"}, "train: No closing quotation"),
    ],
)
def test_a_wrong_description_is_one_line(
    changes: dict[str, Any], message: str, file: Callable[..., str], called: Called
) -> None:
    path = file(**changes)
    code, out, err = called("run", path, "--dry-run")
    assert (code, out) == (2, "")
    assert err.startswith(f"hackmatrix tpu: error: {path}: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected a subcommand, got ''"),
        (("deploy",), "expected a subcommand, got 'deploy'"),
        (("run",), "the following arguments are required: file"),
        (("run", "nope.yaml"), "nope.yaml: No such file or directory"),
        (("run", "x.yaml", "--kepe"), "unknown argument --kepe, did you mean --keep?"),
        (("list", "x.yaml", "--", "ls"), "only `hackmatrix tpu ssh FILE -- COMMAND`"),
    ],
)
def test_a_wrong_command_is_one_line(words: tuple[str, ...], message: str, called: Called) -> None:
    code, _, err = called(*words)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_without_gcloud_it_says_what_to_install(
    file: Callable[..., str], called: Called, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = file()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    for name in ("list", "train", "attach"):
        code, out, err = called(name, path)
        assert code == 1
        assert "gcloud is not installed: install the Google Cloud CLI" in err
    code, out, _ = called("run", path)
    assert code == 1
    assert "gcloud is not installed" in out


def test_dry_runs_run_and_write_nothing(
    gcloud: FakeGcloud, file: Callable[..., str], called: Called, tmp_path: Path
) -> None:
    path = file()
    before = sorted(tmp_path.rglob("*"))
    for name in (*SUBCOMMANDS, "run"):
        code, out, err = called(name, path, "--dry-run")
        assert (code, err) == (0, "")
        assert "$ gcloud " in out
    assert gcloud.calls == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_tpu_for_a_limited_time_comes_from_the_queue_alone(
    gcloud: FakeGcloud, file: Callable[..., str], called: Called
) -> None:
    limited = file(type="v6e-8", zone="us-east5-a", flex_hours=48)
    assert called("create", limited, "--direct") == (
        2,
        "",
        "hackmatrix tpu: error: flex_hours: such TPUs come from the queue alone: "
        "leave --direct out\n",
    )
    assert gcloud.calls == []
    code, out, _ = called("create", limited)
    assert code == 0
    price = "$21.60 an hour (on-demand list price of 2026-11-22; flex-start has its own)"
    assert f"it will cost {price}" in out


def test_errors_are_explained(gcloud: FakeGcloud, file: Callable[..., str], called: Called) -> None:
    text = "User does not have permission to submit requests for accelerator type v4-8"
    gcloud.change(fail={"queued-resources create": [text]})
    code, _, err = called("create", file())
    assert code == 1
    assert text in err
    assert "hackmatrix tpu create: error: you may not do this" in err
    assert f"`hackmatrix tpu quota {file()}`" in err


def test_the_machines_may_write_to_the_bucket_and_delete_their_tpu(
    gcloud: FakeGcloud, file: Callable[..., str], called: Called
) -> None:
    already = {"buckets create": ["HTTPError 409: You already own it."]}
    gcloud.change(project_number=123456, fail=already)
    assert called("init", file())[0] == 0
    member = "--member=serviceAccount:123456-compute@developer.gserviceaccount.com"
    grants = [call for call in gcloud.calls if member in call]
    assert [call[-1] for call in grants] == ["--condition=None", "--role=roles/storage.objectAdmin"]
    assert "--role=roles/tpu.admin" in grants[0]
    gcloud.change(fail={"services enable": ["PERMISSION_DENIED: no"]})
    assert called("init", file())[0] == 1


def test_quotas_are_a_table(gcloud: FakeGcloud, file: Callable[..., str], called: Called) -> None:
    def bucket(zone: str, limit: int, **more: Any) -> dict[str, Any]:
        return {"effectiveLimit": str(limit), "dimensions": {"zone": zone}, **more}

    limits = [bucket("us-central2-b", 32, producerOverride={}), bucket("us-east1-d", 0)]
    unlimited = {"quotaBuckets": [{"effectiveLimit": "-1"}]}
    quotas = [
        {"displayName": "TPU v4 cores", "consumerQuotaLimits": [{"quotaBuckets": limits}]},
        {"metric": "tpu.googleapis.com/calls", "consumerQuotaLimits": [unlimited]},
    ]
    gcloud.change(quotas=quotas)
    code, out, _ = called("quota", file())
    assert code == 0
    assert out.splitlines()[1:] == [
        "TPU v4 cores              us-central2-b  32         (a grant)",
        "tpu.googleapis.com/calls  everywhere     unlimited",
    ]
    gcloud.change(quotas=[])
    assert called("quota", file())[1].splitlines()[1:] == ["the project has no quota of TPUs"]


def test_a_bucket_without_packages_is_no_error(
    gcloud: FakeGcloud, file: Callable[..., str], called: Called
) -> None:
    code, out, _ = called("images", file())
    assert code == 0
    assert out.splitlines()[-1] == "gs://my-bucket/wheels holds no packages"
    gcloud.change(fail={"storage ls": ["PERMISSION_DENIED: no"]})
    assert called("images", file())[0] == 1


def test_by_hand_from_start_to_end(
    gcloud: FakeGcloud, file: Callable[..., str], called: Called
) -> None:
    path = file()
    assert called("create", path)[0] == 0
    assert called("train", path)[2].startswith("hackmatrix tpu train: error: the TPU is ABSENT")
    assert "TPU         READY, v4-8 in us-central2-b" in called("status", path)[1]
    assert called("setup", path)[0] == 0
    assert called("train", path)[0] == 0
    out = called("status", path)[1]
    assert "hosts       training" in out
    assert "next        training" in out
    assert called("ssh", path, "--", "tmux", "list-sessions")[0] == 0
    assert gcloud.calls[-1][-1] == "--command=tmux list-sessions"
    assert called("ssh", path, "--worker", "1", "--", "ls; pwd")[0] == 0
    assert gcloud.calls[-1][-3:] == ["--worker=1", "--quiet", "--command=ls; pwd"]
    gcloud.change(fail={"tpu-vm ssh": [[127, "bash: nope: command not found"]]})
    code, _, err = called("ssh", path, "--", "nope")
    assert code == 1
    assert "command not found" in err
    assert "not installed" not in err  # that would be gcloud
    assert called("fetch", path)[0] == 0
    assert called("delete", path)[0] == 0
    assert gcloud.world["queue"] is None
    code, _, err = called("delete", path)
    assert code == 1
    assert "it is not there" in err


@pytest.mark.thorough
def test_a_run_in_processes(
    gcloud: FakeGcloud, file: Callable[..., str], called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hackmatrix.cli.tpu.Gcloud", Gcloud)
    monkeypatch.setattr("hackmatrix.cli.tpu.sleep", lambda _: None)
    gcloud.change(events={"5": {"hosts": "ended", "code": 0}})
    code, out, _ = called("run", file())
    assert code == 0
    assert "$ gcloud compute tpus queued-resources describe mine" in out
    assert out.endswith("the run is here\n")
    assert gcloud.actions == ["create", "set up", "train", "rsync", "delete"]
    # Again: nothing is left to do.
    assert called("run", file())[0] == 0
    assert len(gcloud.actions) == 5


@pytest.mark.usefixtures("gcloud")
def test_ctrl_c_says_how_to_go_on(
    file: Callable[..., str], called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hackmatrix.cli.tpu.sleep", interrupted)
    path = file()
    code, out, _ = called("run", path)
    assert code == 130
    assert f"  hackmatrix tpu run {path}      goes on here" in out


@pytest.mark.usefixtures("gcloud")
def test_runs_of_one_tpu_do_not_meet(
    file: Callable[..., str], called: Called, tmp_path: Path
) -> None:
    from filelock import FileLock

    folder = tmp_path / ".hackmatrix" / "tpu" / "mine"
    folder.mkdir(parents=True)
    with FileLock(folder / "run.lock"):
        code, _, err = called("run", file())
    assert code == 2
    assert "another `hackmatrix tpu run` of mine is under way here" in err


def test_a_passed_end_makes_no_tpu(
    gcloud: FakeGcloud, file: Callable[..., str], called: Called
) -> None:
    code, _, err = called("create", file(end_date="2026-02-28"))
    assert code == 2
    assert "the end date 2026-02-28 has passed" in err
    assert called("run", file(end_date="2026-02-28"))[0] == 1
    assert gcloud.actions == []


@pytest.mark.usefixtures("gcloud")
def test_odd_zones_and_spot_alone_are_warned_of(file: Callable[..., str], called: Called) -> None:
    out = called("create", file(zone="europe-west4-b", bucket=None), "--dry-run")[1]
    assert "warning: no v4 is known in europe-west4-b: us-central2-b" in out
    assert "warning: spot without bucket: what is trained is lost" in out
    assert "it will cost nothing; " in called("create", file(price=0), "--dry-run")[1]


def test_flags_override_the_file_and_yaml_may_read_a_date(
    file: Callable[..., str], called: Called, tmp_path: Path
) -> None:
    out = called("list", file(), "--zone", "us-east1-d", "--dry-run")[1]
    assert "--zone=us-east1-d" in out
    assert "--spot" not in called("create", file(), "--no-spot", "--dry-run")[1]
    with Path(file()).open("a") as more:
        more.write("end_date: 2026-12-31\n")
    assert read_description(tmp_path / "my-tpu.yaml", {}).end_date == "2026-12-31"
