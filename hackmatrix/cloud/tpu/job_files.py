"""The training as a file for something else that gets machines: the same command, no code of ours.

All of them clone the repository, set a machine up and run `hackmatrix train`, from the newest
checkpoint where the run exists. None has been run where it is meant for.
"""

import dataclasses
import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import HOST_FOLDER, compile_cache, setup_script
from hackmatrix.cloud.tpu.probe import RESTART_CODES
from hackmatrix.core.errors import UserError

# --- The training as lines of a shell, for services that make machines anew -----------------------


def train_arguments(tpu: Description) -> list[str]:
    """The arguments of `hackmatrix` on each host, for the first start and for all later ones."""
    words = ["train", *tpu.train_arguments, "--checkpoint-dir", commands.checkpoint_dir(tpu)]
    words += ["--run-name", tpu.name, "--resume-if-there"]
    return words + (["--distributed"] if tpu.slice.hosts > 1 else [])


def train_script(tpu: Description) -> str:
    """Lines of a shell that train, from the newest checkpoint if the run is in the bucket.

    They keep compiled programs for the next machine, and exit as the training does.
    """
    return f"""export JAX_COMPILATION_CACHE_DIR={HOST_FOLDER}/jax-cache PYTHONUNBUFFERED=1
cd {HOST_FOLDER}/repo
code=0
trap 'kill $!; wait $! || true' TERM # a signal that the shell gets is for the training
{HOST_FOLDER}/venv/bin/python -m hackmatrix {shlex.join(train_arguments(tpu))} &
wait $! || code=$?
gcloud storage rsync {HOST_FOLDER}/jax-cache {compile_cache(tpu)} || true
exit $code"""


def heredoc(command: str, text: str, mark: str) -> str:
    """Lines of a shell that give a command this text as its input, to the letter.

    Args:
        command: the command.
        text: whole lines.
        mark: what ends the text; made longer where the text has such a line.
    """
    while mark in text.split("\n"):
        mark += "_"
    return f"{command} <<'{mark}'\n{text}{mark}\n"


def needs_bucket(tpu: Description, what: str) -> None:
    """Raises `UserError` if there is no bucket."""
    if tpu.bucket is None:
        raise UserError(f"{what} makes machines anew, so checkpoints need a bucket: set bucket")


def region(tpu: Description) -> str:
    """The region of the zone."""
    return tpu.zone.rpartition("-")[0]


# --- A recipe for a managed instance group of Compute Engine --------------------------------------


_TPU_IMAGE = "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
_TPU_IMAGE_PROJECT = "ubuntu-os-accelerator-images"
_WHOLE = ("--target-size-policy-mode=bulk", "--default-action-on-vm-failure=do-nothing")
_SPOT = """
# Google deletes spot machines that it preempts, and does not promise to make them anew: delete the
# group then and run this again."""


def recipe(tpu: Description) -> str:
    """A script that makes the group.

    Raises:
        UserError: there are no groups of such TPUs, or there is no bucket.
    """
    needs_bucket(tpu, "a managed instance group")
    if not tpu.slice.hardware.groups:
        raise UserError(
            f"Compute Engine has no instance groups of {tpu.slice.family}, only of v5p and later: "
            "use `hackmatrix tpu run`"
        )
    where = f"--zone={tpu.zone} --project={tpu.project}"
    note = _SPOT if tpu.spot else ""
    head = f"""#!/bin/bash
# A managed instance group of Compute Engine, whose machines resume the run when they start.{note}
# To end it:
#   gcloud compute instance-groups managed delete {tpu.name} {where}
set -euo pipefail
"""
    startup = f"""#!/bin/bash
until {heredoc("bash", setup_script(tpu, keeps_watch=False), "HACKMATRIX")}do sleep 60; done
while true; do
    code=0
    (
{train_script(tpu)}
    ) || code=$?
    case $code in # finished, or the program failed; anything else is a lost machine
        0 | 1 | 2) break ;;
    esac
    sleep 10
done
gcloud compute instance-groups managed resize {tpu.name} --size=0 {where}
"""
    lines = "\n".join(map(shlex.join, _group(tpu)))
    return f"{head}{heredoc('cat >startup.sh', startup, 'STARTUP')}{lines}\n"


def _group(tpu: Description) -> list[commands.Argv]:
    """The lines that make a group; a policy keeps the machines of a slice together."""
    several, where = tpu.slice.hosts > 1, f"--project={tpu.project}"
    compute = ["gcloud", "compute"]
    policy = [
        *[*compute, "resource-policies", "create", "workload-policy", tpu.name, where],
        f"--region={region(tpu)}",
        "--type=HIGH_THROUGHPUT",
        *([f"--accelerator-topology={tpu.slice.topology}"] if several else []),
    ]
    spot = ["--provisioning-model=SPOT", "--instance-termination-action=DELETE"]
    template = [
        *[*compute, "instance-templates", "create", tpu.name, where],
        f"--machine-type={tpu.slice.machine}",
        f"--image-family={_TPU_IMAGE}",
        f"--image-project={_TPU_IMAGE_PROJECT}",
        "--boot-disk-size=100GB",
        "--maintenance-policy=TERMINATE",
        "--scopes=cloud-platform",
        *(spot if tpu.spot else []),
        *([f"--service-account={tpu.service_account}"] if tpu.service_account else []),
        "--metadata-from-file=startup-script=startup.sh",
    ]
    link = f"projects/{tpu.project}/regions/{region(tpu)}/resourcePolicies/{tpu.name}"
    group = [
        *[*compute, "instance-groups", "managed", "create", tpu.name, where],
        f"--zone={tpu.zone}",
        f"--size={tpu.slice.hosts}",
        f"--template={tpu.name}",
        *([f"--workload-policy={link}", *_WHOLE] if several else []),
    ]
    return [policy, template, group] if several else [template, group]


# The training as a file for something else that gets machines: the same command, no code of ours.


_IMAGE = "google/cloud-sdk:slim"  # has gcloud and a Python that installs ours
_CPUS = 8  # of a node of Slurm, for each of its GPUs
_RESTARTS = 1000  # GKE wants a number
_PORTS = (8471, 8080)  # on which the hosts of a TPU talk


class Export(NamedTuple):
    """A kind of file."""

    meaning: str
    write: Callable[[Description], str]


def export(scheduler: str, tpu: Description) -> str:
    """The text of the file.

    Args:
        scheduler: a key of `EXPORTS`.
        tpu: the TPU and its training.

    Raises:
        UserError: this kind can't have such a TPU, needs a bucket or a repository to clone.
    """
    if tpu.is_local and scheduler != "slurm":
        raise UserError("repo: the machines clone it, so it must be an address")
    return EXPORTS[scheduler].write(tpu)


def warnings(scheduler: str, tpu: Description) -> list[str]:
    """Warnings about keys of the description that a kind of file has no place for."""
    given = {"end_date": tpu.end_date, "flex_hours": tpu.flex_hours}
    return [
        f"{name} does not count in {EXPORTS[scheduler].meaning}: it ends with the training"
        for name, value in given.items()
        if value is not None
    ]


def _skypilot(tpu: Description) -> str:
    needs_bucket(tpu, "SkyPilot")
    task: dict[str, Any] = {
        "name": tpu.name,
        "resources": {
            "infra": f"gcp/{region(tpu)}/{tpu.zone}",
            "accelerators": f"tpu-{tpu.slice.type}",
            "accelerator_args": {
                "runtime_version": tpu.runtime_version,
                "gcp_queued_resource": True,
            },
            "use_spot": tpu.spot,
            "job_recovery": {"recover_on_exit_codes": list(RESTART_CODES)},
        },
        "setup": _as_root(tpu),
        "run": train_script(tpu) + "\n",
    }
    head = [
        "# A task of SkyPilot, whose controller resumes it when it is preempted:",
        "#   sky jobs launch FILE",
        "# With a secret of this machine's environment:",
        "#   sky jobs launch --env WANDB_API_KEY FILE",
    ]
    return "\n".join([*head, _yaml(task)])


def _slurm(tpu: Description) -> str:
    here = dataclasses.replace(tpu, train=_without_device(tpu))
    arguments = shlex.join([word for word in train_arguments(here) if word != "--distributed"])
    if tpu.bucket is None:
        arguments = arguments.replace(commands.checkpoint_dir(tpu), "checkpoints")
    codes = "|".join(map(str, RESTART_CODES))
    return f"""#!/bin/bash
# A job of Slurm, one process a node; submit it in a clone of the repository that has a .venv:
#   sbatch FILE
# Without a bucket the clone must lie on a disk that all nodes share.
#SBATCH --job-name={tpu.name}
#SBATCH --nodes={tpu.slice.hosts}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={tpu.slice.chips_per_host}
#SBATCH --cpus-per-gpu={_CPUS}
#SBATCH --time=1-00:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={tpu.name}.log
set -uo pipefail
cd "$SLURM_SUBMIT_DIR"
code=0
srun .venv/bin/python -m hackmatrix {arguments} --distributed || code=$?
case $code in # a node was lost, or time is up: go on in a new job
    {codes}) scontrol requeue "$SLURM_JOB_ID" ;;
esac
exit $code
"""


def _gke(tpu: Description) -> str:
    needs_bucket(tpu, "GKE")
    where = {
        "cloud.google.com/gke-tpu-accelerator": tpu.slice.hardware.gke,
        "cloud.google.com/gke-tpu-topology": tpu.slice.topology,
    }
    if tpu.spot:
        where["cloud.google.com/gke-spot"] = "true"
    script = f"{_in_container(tpu)}{train_script(tpu)}\n"
    container = {
        "name": "train",
        "image": _IMAGE,
        "command": ["bash", "-c", script],
        "ports": [{"containerPort": port} for port in _PORTS],
        "envFrom": [{"secretRef": {"name": "hackmatrix", "optional": True}}],
        "resources": {"limits": {"google.com/tpu": tpu.slice.chips_per_host}},
    }
    job = {
        "parallelism": tpu.slice.hosts,
        "completions": tpu.slice.hosts,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podFailurePolicy": {
            "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1, 2]}}]
        },
        "template": {
            "spec": {"restartPolicy": "Never", "nodeSelector": where, "containers": [container]}
        },
    }
    failed = {
        "name": "program",
        "action": "FailJobSet",
        "onJobFailureReasons": ["PodFailurePolicy"],
    }
    topology = "alpha.jobset.sigs.k8s.io/exclusive-topology"
    manifest = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": tpu.name,
            "annotations": {topology: "cloud.google.com/gke-nodepool"},
        },
        "spec": {
            "failurePolicy": {"maxRestarts": _RESTARTS, "rules": [failed]},
            "replicatedJobs": [{"name": "hosts", "replicas": 1, "template": {"spec": job}}],
        },
    }
    head = [
        "# A JobSet for a cluster of GKE with JobSet and a pool of",
        f"# {tpu.slice.machine}, topology {tpu.slice.topology}. GKE makes lost nodes anew, and",
        "# JobSet starts all hosts again.",
        "#   kubectl apply -f FILE",
        "# Secrets such as WANDB_API_KEY:",
        "#   kubectl create secret generic hackmatrix --from-env-file=secrets.env",
    ]
    return "\n".join([*head, _yaml(manifest)])


EXPORTS = {
    "skypilot": Export("a task of SkyPilot", _skypilot),
    "slurm": Export("a job of Slurm", _slurm),
    "gke": Export("a JobSet for GKE", _gke),
    "mig": Export("a recipe for a managed instance group of Compute Engine", recipe),
}


def _as_root(tpu: Description) -> str:
    return heredoc("sudo bash", setup_script(tpu, keeps_watch=False), "HACKMATRIX")


def _without_device(tpu: Description) -> str:
    """The arguments of training without `--device`, as a cluster of Slurm has no TPUs."""
    words = tpu.train_arguments
    pairs = zip(words, ["", *words], strict=False)
    return shlex.join(
        word for word, before in pairs if "--device" not in (before, word.split("=")[0])
    )


def _in_container(tpu: Description) -> str:
    setup = heredoc("bash", setup_script(tpu, keeps_watch=False), "HACKMATRIX")
    return f"#!/bin/bash\nset -euo pipefail\n{setup}"


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    ),
)


def _yaml(content: dict[str, Any]) -> str:
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=10_000)
