"""The gcloud lines: those of S0, S1 and S4 in the forms that hold today."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from tpu_lines import SCRIPT, every_line
from tpu_world import FLAGS

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.gcloud_lines import Argv
from hackmatrix.cloud.tpu.run import train
from hackmatrix.core.errors import UserError

ACCOUNT = "train@hack-matrix.iam.gserviceaccount.com"
WHERE = "--zone=us-central2-b --project=hack-matrix"
TABLE = json.loads(FLAGS.read_text())

Make = Callable[..., Description]


def descriptions(make: Make) -> list[Description]:
    full = {
        "queue_hours": 6,
        "service_account": ACCOUNT,
        "secrets": Path("secrets.env"),
    }
    return [
        make(**full),
        make(bucket=None, spot=False),
        make(type="v6e-16", zone="us-east1-d", **full),
        make(type="v5p-8", zone="us-east5-a", spot=False),
        make(type="v6e-8", zone="us-east5-a", flex_hours=48),
    ]


def flags_of(argv: Argv) -> tuple[str, list[str]]:
    """The command and its flags."""
    own = argv[1 : argv.index("--")] if "--" in argv else argv[1:]
    words = [word for word in own if not word.startswith("-")]
    names = [" ".join(words[:length]) for length in range(len(words), 0, -1)]
    command = next(name for name in names if name in TABLE["commands"])
    return command, [word.partition("=")[0] for word in own if word.startswith("-")]


def test_gcloud_takes_every_flag(make: Make) -> None:
    commands_seen = set()
    for tpu in descriptions(make):
        for argv in every_line(tpu):
            command, flags = flags_of(argv)
            # Google's documents use those without `alpha`, for a gcloud to come.
            in_alpha = TABLE["only in alpha"].get(command, [])
            known = {*TABLE["commands"][command], *TABLE["everywhere"], *in_alpha}
            assert set(flags) <= known, argv
            commands_seen.add(command)
    # What the hosts run is in scripts; the table holds nothing else that is not used.
    assert set(TABLE["commands"]) - commands_seen == {
        "storage cat",
        "compute instance-groups managed delete",
    }


def test_no_line_needs_a_shell(make: Make) -> None:
    for tpu in descriptions(make):
        for argv in every_line(tpu):
            assert argv[0] == "gcloud"
            assert shlex.split(shlex.join(argv)) == argv


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            lambda tpu: commands.create(tpu, SCRIPT),
            f"gcloud compute tpus queued-resources create hackmatrix-train {WHERE} "
            "--node-id=hackmatrix-train --accelerator-type=v4-8 "
            "--metadata-from-file=startup-script=setup.sh --spot "
            "--runtime-version=tpu-ubuntu2204-base --valid-until-duration=6h",
        ),
        (
            lambda tpu: commands.create_directly(tpu, SCRIPT),
            f"gcloud compute tpus tpu-vm create hackmatrix-train {WHERE} --accelerator-type=v4-8 "
            "--metadata-from-file=startup-script=setup.sh --spot --version=tpu-ubuntu2204-base",
        ),
        (
            commands.describe,
            f"gcloud compute tpus tpu-vm describe hackmatrix-train {WHERE} --format=json",
        ),
        (
            commands.delete,
            f"gcloud compute tpus tpu-vm delete hackmatrix-train {WHERE} --quiet",
        ),
        (
            commands.delete_request,
            f"gcloud compute tpus queued-resources delete hackmatrix-train {WHERE} --force --quiet",
        ),
        (
            commands.ssh,
            f"gcloud compute tpus tpu-vm ssh hackmatrix-train {WHERE} --worker=all",
        ),
        (
            lambda tpu: commands.ssh(tpu, "nvidia-smi; true"),
            f"gcloud compute tpus tpu-vm ssh hackmatrix-train {WHERE} --worker=all --quiet "
            "--command='nvidia-smi; true'",
        ),
        (
            commands.attach,
            f"gcloud compute tpus tpu-vm ssh hackmatrix-train {WHERE} --worker=0 "
            "--command='tmux attach -t training' -- -t",
        ),
        (
            lambda tpu: commands.logs(tpu, 100, "all", service=True, follow=False),
            f"gcloud compute tpus tpu-vm ssh hackmatrix-train {WHERE} --worker=all --quiet "
            "--command='sudo journalctl -u tpu-runtime --no-pager --lines=100'",
        ),
        (
            lambda tpu: commands.prepare(tpu, ACCOUNT)[1],
            "gcloud storage buckets create gs://my-bucket --project=hack-matrix "
            "--location=us-central2 --uniform-bucket-level-access",
        ),
        (
            lambda tpu: commands.prepare(tpu, ACCOUNT)[2],
            "gcloud storage buckets add-iam-policy-binding gs://my-bucket "
            f"--member=serviceAccount:{ACCOUNT} "
            "--role=roles/storage.objectAdmin",
        ),
        (
            commands.quota,
            "gcloud alpha services quota list --service=tpu.googleapis.com "
            "--consumer=projects/hack-matrix --format=json",
        ),
        (
            lambda tpu: commands.fetch(tpu, Path("checkpoints")),
            "gcloud storage rsync --recursive gs://my-bucket/hackmatrix/runs/hackmatrix-train "
            "checkpoints/hackmatrix-train",
        ),
    ],
)
def test_the_documents_lines_in_their_corrected_forms(
    line: Callable[[Description], Argv], expected: str, make: Make
) -> None:
    assert line(make(queue_hours=6)) == shlex.split(expected)


def test_without_a_bucket_the_run_is_copied_from_the_first_host(make: Make) -> None:
    argv = commands.fetch(make(bucket=None), Path("python/checkpoints"))
    assert argv == shlex.split(
        f"gcloud compute tpus tpu-vm scp {WHERE} --recurse --worker=0 "
        "hackmatrix-train:/opt/hackmatrix/runs/hackmatrix-train python/checkpoints/"
    )


@pytest.mark.parametrize("spot", [True, False])
def test_spot_and_on_demand(spot: bool, make: Make) -> None:
    assert ("--spot" in commands.create(make(spot=spot), SCRIPT)) == spot


def test_what_runs_on_hosts_is_quoted_once_more(make: Make) -> None:
    tpu = make(
        train="--run-suffix '$(reboot)' --project \"it's\"".replace("--run-suffix", "--entity")
    )
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


def test_a_tpu_for_a_limited_time(make: Make) -> None:
    line = commands.create(make(type="v6e-8", zone="us-east5-a", flex_hours=48), SCRIPT)
    assert line[:4] == ["gcloud", "alpha", "compute", "tpus"]
    assert {"--provisioning-model=flex-start", "--max-run-duration=48h"} <= set(line)
    assert "--spot" not in line
    with pytest.raises(UserError, match="no flex-start TPUs of v4"):
        make(flex_hours=48)
