"""A recipe for a managed instance group of Compute Engine."""

import shlex

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import setup_script
from hackmatrix.cloud.tpu.train_script import heredoc, needs_bucket, region, train_script
from hackmatrix.core.errors import UserError

_IMAGE = "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
_IMAGE_PROJECT = "ubuntu-os-accelerator-images"
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
        f"--image-family={_IMAGE}",
        f"--image-project={_IMAGE_PROJECT}",
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
