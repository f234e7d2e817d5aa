"""Exported files are what their readers parse, with the plain training command in them."""

import dataclasses
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from hackmatrix.cli.main import main
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import HOST_FOLDER
from hackmatrix.cloud.tpu.job_files import EXPORTS, export, heredoc, train_script
from hackmatrix.core.errors import UserError

Make = Callable[..., Description]

RUNS = "gs://my-bucket/hackmatrix/runs"
TRAIN = f"train --num-envs 2048 --no-wandb --checkpoint-dir {RUNS} --run-name hackmatrix-train "
TRAIN += "--resume-if-there"
MARKS = dict(zip(EXPORTS, ["STARTUP", "HACKMATRIX"] * 2, strict=True))  # where a script may end


@pytest.fixture
def pod(make: Make) -> Description:
    return make(type="v6e-16", zone="us-east1-d")


def is_bash(text: str) -> bool:
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
    return done.returncode == 0 and not done.stderr


def test_a_task_of_skypilot(pod: Description) -> None:
    task = yaml.safe_load(export("skypilot", pod))
    assert task["name"] == "hackmatrix-train"
    assert task["resources"] == {
        "infra": "gcp/us-east1/us-east1-d",
        "accelerators": "tpu-v6e-16",
        "accelerator_args": {"runtime_version": "v2-alpha-tpuv6e", "gcp_queued_resource": True},
        "use_spot": True,
        "job_recovery": {"recover_on_exit_codes": [75, 129, 134, 137, 143]},
    }
    assert is_bash(task["setup"])
    assert f"-m hackmatrix {TRAIN} --distributed &\n" in task["run"]


@pytest.mark.parametrize(
    "field", ["name", "project", "zone", "repo", "branch", "bucket", "runtime", "service_account"]
)
def test_no_field_brings_lines_of_its_own_into_a_script(field: str, make: Make) -> None:
    with pytest.raises(UserError, match=f"^{field} must "):
        make(**{field: f"{getattr(make(), field) or 'x'}\nSTARTUP\ntouch broken-out"})


@pytest.mark.parametrize(("kind", "mark"), MARKS.items())
def test_what_is_trained_brings_no_lines_into_a_script(kind: str, mark: str, make: Make) -> None:
    pod = make(type="v6e-16", zone="us-east1-d", train="--num-envs 2048\n  --no-wandb\n")
    text = export(kind, dataclasses.replace(pod, secrets="secrets.env"))
    assert TRAIN in text or kind == "slurm"
    assert text.endswith("\n")
    assert "VALUES" not in text  # a name that is left open
    hostile = f"--project 'x\n{mark}\ntouch broken-out\n'"
    with pytest.raises(UserError, match=r"^train must have no control characters"):
        export(kind, dataclasses.replace(pod, train=hostile))


def test_a_text_that_has_the_mark_ends_where_it_ends() -> None:
    text = "one\nEND\nEND_\n"
    done = subprocess.run(
        ["bash"], input=heredoc("cat", text, "END"), text=True, capture_output=True
    )
    assert done.stdout == text


def test_a_job_of_slurm(pod: Description) -> None:
    text = export("slurm", pod)
    assert is_bash(text)
    assert text.startswith("#!/bin/bash\n")
    options = [line.split()[1] for line in text.splitlines() if line.startswith("#SBATCH")]
    assert {"--nodes=4", "--ntasks-per-node=1", "--gpus-per-node=4"} <= set(options)
    assert any(option.startswith("--time=") for option in options)
    assert any(option.startswith("--cpus-per-gpu=") for option in options)
    assert "gcloud" not in text
    assert text.index("#SBATCH") < text.index("set -uo")  # Slurm stops at the first command


@pytest.mark.parametrize(("code", "requeued"), [(0, False), (1, False), (75, True)])
def test_a_job_of_slurm_outlives_a_node(
    code: int, requeued: bool, make: Make, tmp_path: Any
) -> None:
    text = export("slurm", make(bucket=None, train="--device tpu --num-envs 64 --device=tpu"))
    stand_ins = f'srun() {{ echo "srun $*"; return {code}; }}\nscontrol() {{ echo "$*"; }}\n'
    done = subprocess.run(
        ["bash", "-c", stand_ins + text],
        capture_output=True,
        text=True,
        env={"SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_ID": "7", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == code
    assert ("requeue 7" in done.stdout) == requeued
    assert done.stdout.splitlines()[0].endswith(
        "-m hackmatrix train --num-envs 64 --checkpoint-dir checkpoints --run-name "
        "hackmatrix-train --resume-if-there --distributed"
    )


def test_a_jobset_of_gke(pod: Description) -> None:
    jobset = yaml.safe_load(export("gke", pod))
    assert (jobset["apiVersion"], jobset["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    # What JobSet's own schema allows: its CRD, and for the reasons its webhook.
    failed = {"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}
    assert jobset["spec"].pop("failurePolicy") == {
        "maxRestarts": 1000,
        "rules": [{"name": "program", **failed}],
    }
    assert jobset["spec"].keys() == {"replicatedJobs"}
    (job,) = jobset["spec"]["replicatedJobs"]
    assert job.keys() == {"name", "replicas", "template"}
    spec = job["template"]["spec"]
    assert (spec["parallelism"], spec["completions"], spec["completionMode"]) == (4, 4, "Indexed")
    pods = spec["template"]["spec"]
    assert pods["restartPolicy"] == "Never"
    assert pods["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "4x4",
        "cloud.google.com/gke-spot": "true",
    }
    (container,) = pods["containers"]
    assert container["resources"]["limits"] == {"google.com/tpu": 4}
    shell, option, script = container["command"]
    assert (shell, option) == ("bash", "-c")
    assert is_bash(script)
    assert TRAIN in script


def test_a_recipe_for_an_instance_group_trains_to_the_end(pod: Description, tmp_path: Path) -> None:
    text = export("mig", pod)
    assert is_bash(text)
    assert "--accelerator-topology=4x4" in text
    assert "--target-size-policy-mode=bulk --default-action-on-vm-failure=do-nothing" in text
    one = export("mig", dataclasses.replace(pod, type="v6e-8", spot=False))
    assert not any(word in one for word in ("workload-policy", "SPOT", "--distributed"))

    startup = text.split("<<'STARTUP'\n")[1].split("\nSTARTUP\n")[0]
    assert TRAIN in startup
    stand_ins = (
        "sleep() { :; }\ncd() { :; }\n"
        'gcloud() { echo "gcloud $*"; }\n'
        "bash() { cat >/dev/null; }\n"
        "trains() { echo trains; [ -e twice ] && return 0; touch twice; return 75; }\n"
    )
    script = stand_ins + startup.replace("/opt/hackmatrix/venv/bin/python", "trains")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path)
    trained, kept = "trains", "gcloud storage rsync /opt/hackmatrix/jax-cache "
    kept += "gs://my-bucket/hackmatrix/jax-cache/v6e-16"
    *lines, last = done.stdout.splitlines()
    assert lines == [trained, kept, trained, kept]
    assert "resize hackmatrix-train --size=0" in last


def test_a_signal_reaches_training_whose_code_counts(pod: Description, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        "#!/bin/sh\ntrap 'echo saved; exit 143' TERM\necho trains\nwhile sleep 0.05; do :; done\n"
    )
    python.chmod(0o755)
    script = train_script(pod).replace(HOST_FOLDER, str(tmp_path))
    script = f"set -e\ngcloud() {{ echo kept; false; }}\n{script}"
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        assert shell.stdout.readline() == "trains\n"
        shell.terminate()
        assert shell.communicate()[0] == "saved\nkept\n"
    assert shell.returncode == 143


def test_what_a_file_has_no_place_for_is_warned_of(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tpu = make(type="v6e-8", zone="us-east1-d", end_date="2099-12-31", flex_hours=48)
    given = {name: getattr(tpu, name) for name in ("name", "project", "zone", "type", "repo")}
    given |= {"bucket": tpu.bucket, "end_date": tpu.end_date, "flex_hours": 48}
    (tmp_path / "x.yaml").write_text(yaml.safe_dump(given))
    assert main(["tpu", "export", "gke", str(tmp_path / "x.yaml")]) == 0
    out, err = capsys.readouterr()
    assert yaml.safe_load(out)["kind"] == "JobSet"
    assert err.splitlines() == [
        f"warning: {name} does not count in a JobSet for GKE: it ends with the training"
        for name in ("end_date", "flex_hours")
    ]


def test_what_can_not_be_exported_is_told(make: Make) -> None:
    for kind in ("skypilot", "gke", "mig"):  # machines that are made anew
        with pytest.raises(UserError, match="set bucket"):
            export(kind, make(type="v6e-8", bucket=None))
    with pytest.raises(UserError, match="only of v5p and later"):
        export("mig", make())


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tpu", "export", "--help"]) == 0
    assert "  skypilot " in capsys.readouterr().out
    assert main(["tpu", "export", "k8s", "x.yaml"]) == 2
    assert "expected one of skypilot, slurm, gke, mig, got 'k8s'" in capsys.readouterr().err
