"""The training as a file for something else that gets machines: the same command, no code of ours.

All of them clone the repository, set a machine up and run `hackmatrix train`, from the newest
checkpoint where the run exists. None has been run where it is meant for.
"""

import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from hackmatrix.errors import UserError
from hackmatrix.tpu import commands
from hackmatrix.tpu.description import Description
from hackmatrix.tpu.hosts import PLACE, setup_script
from hackmatrix.tpu.observed import RESTART_CODES

_IMAGE = "google/cloud-sdk:slim"  # has gcloud and a Python that installs ours
_IMAGE_OF_GROUPS = "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
_IMAGE_PROJECT = "ubuntu-os-accelerator-images"
_RESTARTS = 1000  # GKE wants a number
_PORTS = (8471, 8080)  # on which the hosts of a TPU talk


class Export(NamedTuple):
    """A kind of file."""

    meaning: str
    write: Callable[[Description], str]


def export(kind: str, tpu: Description) -> str:
    """The text of the file.

    Args:
        kind: a key of `EXPORTS`.
        tpu: the TPU and its training.

    Raises:
        UserError: this kind can't have such a TPU, or needs a bucket.
    """
    return EXPORTS[kind].write(tpu)


def train_script(tpu: Description, *, distributed: bool) -> str:
    """Lines of a shell that train, from the newest checkpoint if the run is in the bucket."""
    run = shlex.quote(commands.run_folder(tpu))
    words = ["train", *tpu.train_arguments, "--checkpoint-dir", commands.checkpoint_dir(tpu)]
    words += ["--distributed"] if distributed else []
    return "\n".join(
        [
            f"run={run}",
            'if gcloud storage ls "$run/config.yaml" >/dev/null 2>&1; then',
            '    which=(--resume "$run")',
            "else",
            f"    which=(--run-name {shlex.quote(tpu.name)})",
            "fi",
            f"export JAX_COMPILATION_CACHE_DIR={PLACE}/jax-cache PYTHONUNBUFFERED=1",
            f"cd {PLACE}/repo",
            f'{PLACE}/venv/bin/python -m hackmatrix {shlex.join(words)} "${{which[@]}}"',
        ]
    )


def _skypilot(tpu: Description) -> str:
    _needs_bucket(tpu, "SkyPilot")
    task: dict[str, Any] = {
        "name": tpu.name,
        "resources": {
            "infra": f"gcp/{_region(tpu)}/{tpu.zone}",
            "accelerators": f"tpu-{tpu.slice.type}",
            "accelerator_args": {"runtime_version": tpu.runtime_version},
            "use_spot": tpu.spot,
        },
        "setup": _as_root(tpu),
        "run": train_script(tpu, distributed=tpu.slice.hosts > 1) + "\n",
    }
    head = [
        "# A task of SkyPilot, whose controller resumes it when it is preempted:",
        "#   sky jobs launch FILE",
        "# With a secret of this machine's environment:",
        "#   sky jobs launch --env WANDB_API_KEY FILE",
    ]
    return "\n".join([*head, _yaml(task)])


def _slurm(tpu: Description) -> str:
    hosts, chips = tpu.slice.hosts, tpu.slice.chips_per_host
    runs = "$SLURM_SUBMIT_DIR/checkpoints" if tpu.bucket is None else commands.checkpoint_dir(tpu)
    there = '[ -e "$run/config.yaml" ]'
    if tpu.bucket is not None:
        there = 'gcloud storage ls "$run/config.yaml" >/dev/null 2>&1'
    arguments = shlex.join(tpu.train_arguments)
    codes = "|".join(map(str, RESTART_CODES))
    return f"""#!/bin/bash
# A job of Slurm, one process a node; submit it in a clone of the repository that has a .venv:
#   sbatch FILE
# Without a bucket the clone must lie on a disk that all nodes share.
#SBATCH --job-name={tpu.name}
#SBATCH --nodes={hosts}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={chips}
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={tpu.name}.log
set -uo pipefail
cd "$SLURM_SUBMIT_DIR"
runs={runs if tpu.bucket is None else shlex.quote(runs)}
run=$runs/{tpu.name}
if {there}; then
    which=(--resume "$run")
else
    which=(--run-name {tpu.name})
fi
code=0
srun .venv/bin/python -m hackmatrix train {arguments} --checkpoint-dir "$runs" --distributed \\
    "${{which[@]}}" || code=$?
case $code in # a node was lost, or time is up: go on in a new job
    {codes}) scontrol requeue "$SLURM_JOB_ID" ;;
esac
exit $code
"""


def _gke(tpu: Description) -> str:
    _needs_bucket(tpu, "GKE")
    where = {
        "cloud.google.com/gke-tpu-accelerator": tpu.slice.kind.gke,
        "cloud.google.com/gke-tpu-topology": tpu.slice.topology,
    }
    if tpu.spot:
        where["cloud.google.com/gke-spot"] = "true"
    script = f"{_in_container(tpu)}\n{train_script(tpu, distributed=tpu.slice.hosts > 1)}\n"
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


def _mig(tpu: Description) -> str:
    _needs_bucket(tpu, "a managed instance group")
    if not tpu.slice.kind.groups:
        raise UserError(
            f"Compute Engine has no instance groups of {tpu.slice.family}, only of v5p and later: "
            "use `hackmatrix tpu run`"
        )
    where = f"--zone={tpu.zone} --project={tpu.project}"
    head = f"""#!/bin/bash
# A managed instance group of Compute Engine: Google makes lost machines anew, and their start-up
# script resumes the run. Nothing of yours has to stay awake. To end it:
#   gcloud compute instance-groups managed delete {tpu.name} {where}
set -euo pipefail
cat >startup.sh <<'STARTUP'
#!/bin/bash
until bash <<'HACKMATRIX'
{setup_script(tpu)}HACKMATRIX
do sleep 60; done
while true; do
    code=0
    (
{train_script(tpu, distributed=tpu.slice.hosts > 1)}
    ) || code=$?
    case $code in # finished, or the program failed; anything else is a lost machine
        0 | 1 | 2) break ;;
    esac
    sleep 10
done
gcloud compute instance-groups managed resize {tpu.name} --size=0 {where}
STARTUP
"""
    return head + "\n".join(map(shlex.join, _group(tpu))) + "\n"


def _group(tpu: Description) -> list[commands.Argv]:
    """The lines that make a group; a policy keeps the machines of a slice together."""
    several, where = tpu.slice.hosts > 1, f"--project={tpu.project}"
    compute = ["gcloud", "compute"]
    policy = [
        *[*compute, "resource-policies", "create", "workload-policy", tpu.name, where],
        f"--region={_region(tpu)}",
        "--type=HIGH_THROUGHPUT",
        *([f"--accelerator-topology={tpu.slice.topology}"] if several else []),
    ]
    spot = ["--provisioning-model=SPOT", "--instance-termination-action=DELETE"]
    template = [
        *[*compute, "instance-templates", "create", tpu.name, where],
        f"--machine-type={tpu.slice.machine}",
        f"--image-family={_IMAGE_OF_GROUPS}",
        f"--image-project={_IMAGE_PROJECT}",
        "--boot-disk-size=100GB",
        "--maintenance-policy=TERMINATE",
        "--scopes=cloud-platform",
        *(spot if tpu.spot else []),
        *([f"--service-account={tpu.service_account}"] if tpu.service_account else []),
        "--metadata-from-file=startup-script=startup.sh",
    ]
    link = f"projects/{tpu.project}/regions/{_region(tpu)}/resourcePolicies/{tpu.name}"
    group = [
        *[*compute, "instance-groups", "managed", "create", tpu.name, where],
        f"--zone={tpu.zone}",
        f"--size={tpu.slice.hosts}",
        f"--template={tpu.name}",
        *([f"--workload-policy={link}"] if several else []),
    ]
    return [policy, template, group] if several else [template, group]


EXPORTS = {
    "skypilot": Export("a task of SkyPilot", _skypilot),
    "slurm": Export("a job of Slurm", _slurm),
    "gke": Export("a JobSet for GKE", _gke),
    "mig": Export("a recipe for a managed instance group of Compute Engine", _mig),
}


def _needs_bucket(tpu: Description, what: str) -> None:
    if tpu.bucket is None:
        raise UserError(f"{what} makes machines anew, so checkpoints need a bucket: set bucket")


def _as_root(tpu: Description) -> str:
    return f"sudo bash <<'HACKMATRIX'\n{setup_script(tpu)}HACKMATRIX\n"


def _in_container(tpu: Description) -> str:
    return f"#!/bin/bash\nset -euo pipefail\nbash <<'HACKMATRIX'\n{setup_script(tpu)}HACKMATRIX"


def _region(tpu: Description) -> str:
    return tpu.zone.rpartition("-")[0]


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
