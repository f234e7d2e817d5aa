"""Exported files are read by the programs that they are for; pip installs two of these."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.job_files import export

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
Make = Callable[..., Description]

READERS = ("skypilot==0.14.1", "kubernetes-validate==1.37.0")
SKYPILOT = """
import sys, sky
[resources] = sky.Task.from_yaml(sys.argv[1]).resources
print(resources.cloud, *resources.accelerators, resources.use_spot, resources.zone)
"""
# A JobSet is made of templates of jobs, of which Kubernetes knows the schema.
KUBERNETES = """
import sys, kubernetes_validate, yaml
[hosts] = yaml.safe_load(open(sys.argv[1]))["spec"]["replicatedJobs"]
job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "hosts"}, **hosts["template"]}
kubernetes_validate.validate(job, "1.33", strict=True)
"""
SLURM = """
ClusterName=made-up
SlurmctldHost=localhost
GresTypes=gpu
NodeName=localhost Gres=gpu:4
PartitionName=all Nodes=ALL
AuthType=auth/none
SelectType=select/cons_tres
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has the readers."""
    place = tmp_path_factory.mktemp("readers")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", *READERS]
    subprocess.run(pip, check=True, capture_output=True)
    return place / "bin" / "python"


def read(python: Path, code: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a reader says of a file."""
    (folder / "file.yaml").write_text(text)
    return subprocess.run(
        [python, "-c", code, folder / "file.yaml"],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )


@pytest.mark.parametrize(("kind", "zone"), [("v4-8", "us-central2-b"), ("v6e-16", "us-east1-d")])
def test_skypilot_reads_it(kind: str, zone: str, python: Path, make: Make, tmp_path: Path) -> None:
    text = export("skypilot", make(type=kind, zone=zone))
    done = read(python, SKYPILOT, text, tmp_path)
    assert done.stdout.split() == ["GCP", f"tpu-{kind}", "True", zone], done.stderr
    wrong = read(python, SKYPILOT, text.replace("job_recovery:", "job_recover:"), tmp_path)
    assert "did you mean 'job_recovery'" in wrong.stderr


def test_kubernetes_knows_the_jobs_of_the_job_set(python: Path, make: Make, tmp_path: Path) -> None:
    text = export("gke", make(type="v6e-16", zone="us-east1-d"))
    done = read(python, KUBERNETES, text, tmp_path)
    assert done.returncode == 0, done.stderr
    wrong = read(python, KUBERNETES, text.replace("restartPolicy:", "restart:"), tmp_path)
    assert "'restart' was unexpected" in wrong.stderr


@pytest.mark.skipif(not shutil.which("sbatch"), reason="needs sbatch: apt install slurm-client")
def test_slurm_knows_the_options_of_the_job(make: Make, tmp_path: Path) -> None:
    def said(text: str) -> str:
        (tmp_path / "job.sh").write_text(text)
        (tmp_path / "slurm.conf").write_text(SLURM)
        done = subprocess.run(
            ["sbatch", "--test-only", tmp_path / "job.sh"],
            capture_output=True,
            text=True,
            env=os.environ | {"SLURM_CONF": str(tmp_path / "slurm.conf")},
        )
        return done.stderr

    text = export("slurm", make(type="v6e-16", zone="us-east1-d"))
    assert "Unable to contact slurm controller" in said(text)  # so all else was in order
    assert "unrecognized option '--cpus-a-gpu" in said(text.replace("--cpus-per", "--cpus-a"))
