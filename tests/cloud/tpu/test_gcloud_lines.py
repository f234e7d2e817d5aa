"""The gcloud lines: those of S0, S1 and S4 in the forms that hold today."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tpu_world import FLAGS

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.gcloud_lines import Argv
from hackmatrix.cloud.tpu.hosts import look_command
from hackmatrix.cloud.tpu.job_files import export
from hackmatrix.cloud.tpu.run import train
from hackmatrix.core.errors import UserError

SCRIPT = Path("setup.sh")
ACCOUNT = "train@hack-matrix.iam.gserviceaccount.com"
WHERE = "--zone=us-central2-b --project=hack-matrix"
TABLE = json.loads(FLAGS.read_text())

Make = Callable[..., Description]


def descriptions(make: Make) -> list[Description]:
    full = {"queue_hours": 6, "service_account": ACCOUNT, "secrets": Path("secrets.env")}
    return [
        make(**full),
        make(bucket=None, spot=False),
        make(type="v6e-16", zone="us-east1-d", **full),
        make(type="v5p-8", zone="us-east5-a", spot=False),
        make(type="v6e-8", zone="us-east5-a", flex_hours=48),
    ]


def every_line(tpu: Description) -> Iterator[Argv]:
    """Every command line of `hackmatrix tpu` and of its export of a recipe."""
    yield commands.create(tpu, SCRIPT)
    yield commands.create_directly(tpu, SCRIPT)
    yield commands.describe_request(tpu)
    yield commands.describe(tpu)
    yield commands.delete_request(tpu)
    yield commands.delete(tpu)
    yield commands.start(tpu)
    yield commands.stop(tpu)
    yield from commands.list_all(tpu)
    yield commands.ssh(tpu)
    yield commands.ssh(tpu, look_command(tpu, 7), "0-3")
    yield commands.attach(tpu)
    yield commands.logs(tpu, 10, "0", service=True, follow=True)
    yield from commands.set_up(tpu, SCRIPT)
    yield commands.fetch(tpu, Path("checkpoints"))
    yield commands.enable_services(tpu)
    yield commands.project_number(tpu)
    yield from commands.prepare(tpu, "a@b.com")
    yield commands.quota(tpu)
    yield commands.runtimes(tpu)
    yield commands.types(tpu)
    yield from train(tpu, again=True)
    if tpu.bucket is not None:
        yield commands.upload_code(tpu, Path("0123.tar.gz"))
        yield commands.list_run(tpu)
        yield commands.list_wheels(tpu)
        if tpu.slice.hardware.groups:
            recipe = export("mig", tpu)
            yield from (
                shlex.split(line) for line in recipe.splitlines() if "gcloud comp" in line[:13]
            )


def flags_of(argv: Argv) -> tuple[str, list[str]]:
    """The command and its flags."""
    own = argv[1 : argv.index("--")] if "--" in argv else argv[1:]
    words = [word for word in own if not word.startswith("-")]
    names = [" ".join(words[:length]) for length in range(len(words), 0, -1)]
    command = next(name for name in names if name in TABLE["commands"])
    return command, [word.partition("=")[0] for word in own if word.startswith("-")]


def test_gcloud_takes_every_flag_and_no_line_needs_a_shell(make: Make) -> None:
    commands_seen = set()
    for tpu in descriptions(make):
        for argv in every_line(tpu):
            command, flags = flags_of(argv)
            # Google's documents use those without `alpha`, for a gcloud to come.
            in_alpha = TABLE["only in alpha"].get(command, [])
            known = {*TABLE["commands"][command], *TABLE["everywhere"], *in_alpha}
            assert set(flags) <= known, argv
            commands_seen.add(command)
            assert argv[0] == "gcloud"
            assert shlex.split(shlex.join(argv)) == argv
    # What the hosts run is in scripts; the table holds nothing else that is not used.
    assert set(TABLE["commands"]) - commands_seen == {
        "storage cat",
        "compute instance-groups managed delete",
    }


def test_the_lines_are_those_of_the_documents_in_their_corrected_forms(make: Make) -> None:
    """What a host runs is in the tests of the scripts."""
    at_home, alone = make(queue_hours=6, service_account=ACCOUNT), make(bucket=None, spot=False)
    limited = make(type="v6e-8", zone="us-east5-a", flex_hours=48)
    lines = [*every_line(at_home), commands.fetch(alone, Path("python/checkpoints"))]
    lines += [commands.create(tpu, SCRIPT) for tpu in (alone, limited)]
    told = [shlex.join(line) for line in lines if not re.search("worker (look|start)", line[-1])]
    expected = Path(__file__).with_name("gcloud_lines.txt").read_text().splitlines()
    assert told == [line for line in expected if not line.startswith("#")]


def test_what_runs_on_hosts_is_quoted_once_more(make: Make) -> None:
    tpu = make(train="--entity '$(reboot)' --project \"it's\"")
    command = train(tpu, again=False)[-1][-1].removeprefix("--command=")
    words = shlex.split(command)
    assert words[words.index("--entity") + 1] == "$(reboot)"
    assert words[words.index("--project") + 1] == "it's"
    assert "'$(reboot)'" in command


def test_training_begins_or_goes_on(make: Make) -> None:
    def words(**changes: object) -> list[str]:
        (argv,) = train(make(**changes), again=False)
        return shlex.split(argv[-1].removeprefix("--command="))

    there = words()
    assert there[there.index("train") :] == shlex.split(
        "train --num-envs 2048 --no-wandb --checkpoint-dir gs://my-bucket/hackmatrix/runs "
        "--run-name hackmatrix-train --resume-if-there"
    )
    assert words(type="v4-16")[-1] == "--distributed"


def test_a_limited_time_needs_a_newer_tpu(make: Make) -> None:
    with pytest.raises(UserError, match="no flex-start TPUs of v4"):
        make(flex_hours=48)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
@pytest.mark.parametrize(("type_", "flex_hours"), [("v4-16", None), ("v6e-16", 48)])
def test_the_real_gcloud_takes_every_line(
    type_: str, flex_hours: int | None, make: Make, tmp_path: Path
) -> None:
    """Without an account gcloud reads the line, then asks for a login (exit code 1)."""
    (tmp_path / "setup.sh").touch()
    (tmp_path / "startup.sh").touch()
    environment = {
        **os.environ,
        "CLOUDSDK_CONFIG": str(tmp_path / "config"),
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
    }
    tpu = make(
        type=type_,
        zone="us-east1-d",
        flex_hours=flex_hours,
        queue_hours=6,
        service_account=ACCOUNT,
        secrets=tmp_path / "setup.sh",
    )
    in_alpha = set().union(*TABLE["only in alpha"].values())
    seen = set()
    for argv in every_line(tpu):
        if (command := tuple(argv[:6])) in seen:
            continue
        seen.add(command)
        if in_alpha & {word.partition("=")[0] for word in argv}:
            argv = [argv[0], "alpha", *argv[1:]]
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 1, (argv, done.stderr)
        assert "gcloud auth login" in done.stderr, (argv, done.stderr)
    wrong = ["gcloud", "compute", "tpus", "tpu-vm", "create", "x", "--vm-image=y"]
    done = subprocess.run(wrong, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2
