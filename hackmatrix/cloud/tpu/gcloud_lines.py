"""The gcloud lines, as lists of arguments: pure functions of a description.

This is the one file that knows the Cloud TPU API, which Google only maintains: TPU7x and later are
to be had from Compute Engine and GKE alone (`job_files.py`).
"""

from pathlib import Path

from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import HOST_FOLDER, SECRETS, SESSION

Argv = list[str]

SETUP_ON_HOST = "/tmp/hackmatrix-setup.sh"
_APIS = ("compute.googleapis.com", "tpu.googleapis.com", "storage.googleapis.com")
_WRITES_OBJECTS = "roles/storage.objectAdmin"
_DELETES_TPUS = "roles/tpu.admin"


def create(tpu: Description, script: Path) -> Argv:
    """Puts a request into the queue; `script` runs on each host when it starts."""
    argv = [*_queue("create", tpu), f"--node-id={tpu.name}", *_machine_arguments(tpu, script)]
    if tpu.flex_hours is not None:
        argv[1:1] = ["alpha"]
        argv += ["--provisioning-model=flex-start", f"--max-run-duration={tpu.flex_hours}h"]
    argv.append(f"--runtime-version={tpu.runtime_version}")
    if tpu.queue_hours is not None:
        argv.append(f"--valid-until-duration={tpu.queue_hours}h")
    return argv


def create_directly(tpu: Description, script: Path) -> Argv:
    """Makes the TPU now or fails, without a queue."""
    return [
        *_vm("create", tpu),
        *_machine_arguments(tpu, script),
        f"--version={tpu.runtime_version}",
    ]


def describe_request(tpu: Description) -> Argv:
    """Tells the state of the request, as JSON."""
    return [*_queue("describe", tpu), "--format=json"]


def describe(tpu: Description) -> Argv:
    """Tells the state of the TPU, as JSON."""
    return [*_vm("describe", tpu), "--format=json"]


def delete_request(tpu: Description) -> Argv:
    """Deletes the request and its TPU. Until then it counts against the quota."""
    return [*_queue("delete", tpu), "--force", "--quiet"]


def delete(tpu: Description) -> Argv:
    """Deletes a TPU that no request made."""
    return [*_vm("delete", tpu), "--quiet"]


def start(tpu: Description) -> Argv:
    """Starts a stopped TPU."""
    return _vm("start", tpu)


def stop(tpu: Description) -> Argv:
    """Stops a TPU; its disk stays."""
    return _vm("stop", tpu)


def list_all(tpu: Description) -> list[Argv]:
    """Lists the TPUs and the requests of the zone."""
    where = [f"--zone={tpu.zone}", f"--project={tpu.project}"]
    kinds = ("tpu-vm", "queued-resources")
    return [["gcloud", "compute", "tpus", kind, "list", *where] for kind in kinds]


def ssh(tpu: Description, command: str | None = None, worker: str = "all") -> Argv:
    """Runs a command of a shell on hosts; without one, opens a shell on one host."""
    argv = [*_vm("ssh", tpu), f"--worker={worker}"]
    return argv if command is None else [*argv, "--quiet", f"--command={command}"]


def attach(tpu: Description) -> Argv:
    """Shows the session in which the first host trains; a terminal is needed for that (-t)."""
    command = f"--command=tmux attach -t {SESSION}"
    return [*_vm("ssh", tpu), "--worker=0", command, "--", "-t"]


def logs(tpu: Description, lines: int, worker: str, *, service: bool, follow: bool) -> Argv:
    """Shows what training printed, or what the TPU's own service did."""
    on = ["--follow"] if follow else []
    if service:
        words = ["sudo", "journalctl", "-u", "tpu-runtime", "--no-pager", f"--lines={lines}", *on]
    else:
        words = ["tail", f"--lines={lines}", *on, f"{HOST_FOLDER}/train.log"]
    return ssh(tpu, " ".join(words), worker)


def set_up(tpu: Description, script: Path, *, update: bool = False) -> list[Argv]:
    """Copies the set-up to all hosts and runs it.

    Args:
        tpu: the TPU.
        script: the set-up.
        update: take the newest code, in place of the commit that the run began with.
    """
    words = f"sudo bash {SETUP_ON_HOST}" + (" update" if update else "")
    return [_copy(tpu, str(script), SETUP_ON_HOST), ssh(tpu, words)]


def copy_secrets(tpu: Description) -> list[Argv]:
    """Copies the secrets to all hosts, if there are any."""
    if tpu.secrets is None:
        return []
    return [_copy(tpu, str(tpu.secrets.expanduser()), SECRETS)]


def upload_code(tpu: Description, archive: Path) -> Argv:
    """Copies the code of this machine to the bucket."""
    return ["gcloud", "storage", "cp", str(archive), f"{tpu.bucket}/code/{archive.name}"]


def list_run(tpu: Description) -> Argv:
    """Lists the run's files in the bucket."""
    return ["gcloud", "storage", "ls", f"{run_folder(tpu)}/**"]


def list_wheels(tpu: Description) -> Argv:
    """Lists the packages that new hosts find in the bucket."""
    return ["gcloud", "storage", "ls", f"{tpu.bucket}/wheels/**"]


def fetch(tpu: Description, folder: Path) -> Argv:
    """Copies the run to a folder of this machine, from the bucket or else from the TPU."""
    if tpu.bucket is None:
        argv = [*_vm_verb("scp", tpu), "--recurse", "--worker=0"]
        return [*argv, f"{tpu.name}:{run_folder(tpu)}", f"{folder}/"]
    target = f"{folder / tpu.name}"
    return ["gcloud", "storage", "rsync", "--recursive", run_folder(tpu), target]


def run_folder(tpu: Description) -> str:
    """The run's folder, in the bucket or on the TPU's disk."""
    return f"{checkpoint_dir(tpu)}/{tpu.name}"


def checkpoint_dir(tpu: Description) -> str:
    """The folder of runs, in the bucket or on the TPU's disk."""
    return f"{HOST_FOLDER if tpu.bucket is None else tpu.bucket}/runs"


def enable_services(tpu: Description) -> Argv:
    """Switches on the services of a new project."""
    return ["gcloud", "services", "enable", *_APIS, f"--project={tpu.project}"]


def project_number(tpu: Description) -> Argv:
    """Tells the project's number, which names the account of its machines."""
    return ["gcloud", "projects", "describe", tpu.project, "--format=value(projectNumber)"]


def prepare(tpu: Description, account: str) -> list[Argv]:
    """Makes the bucket; lets the machines write there and delete their TPU.

    Args:
        tpu: the TPU.
        account: the account of its machines.
    """
    member, project = f"--member=serviceAccount:{account}", f"--project={tpu.project}"
    grant = ["gcloud", "projects", "add-iam-policy-binding", tpu.project, member]
    lines = [[*grant, f"--role={_DELETES_TPUS}", "--condition=None"]]
    if tpu.bucket is None:
        return lines
    bucket = "/".join(tpu.bucket.split("/")[:3])
    buckets = ["gcloud", "storage", "buckets"]
    near = f"--location={tpu.zone.rpartition('-')[0]}"
    lines.append([*buckets, "create", bucket, project, near, "--uniform-bucket-level-access"])
    role = f"--role={_WRITES_OBJECTS}"
    return [*lines, [*buckets, "add-iam-policy-binding", bucket, member, role]]


def quota(tpu: Description) -> Argv:
    """Tells the quotas of the project; grants of TPU Research Cloud are `producerOverride`."""
    words = ["gcloud", "alpha", "services", "quota", "list", "--service=tpu.googleapis.com"]
    return [*words, f"--consumer=projects/{tpu.project}", "--format=json"]


def runtimes(tpu: Description) -> Argv:
    """Lists the runtimes of the zone."""
    return _in_zone(tpu, "versions")


def types(tpu: Description) -> Argv:
    """Lists the types of the zone."""
    return _in_zone(tpu, "accelerator-types")


def _in_zone(tpu: Description, what: str) -> Argv:
    words = ["gcloud", "compute", "tpus", "tpu-vm", what, "list"]
    return [*words, f"--zone={tpu.zone}", f"--project={tpu.project}"]


def _machine_arguments(tpu: Description, script: Path) -> Argv:
    argv = [f"--accelerator-type={tpu.slice.type}", f"--metadata-from-file=startup-script={script}"]
    if tpu.is_spot:
        argv.append("--spot")
    if tpu.service_account is not None:
        argv.append(f"--service-account={tpu.service_account}")
    return argv


def _queue(verb: str, tpu: Description) -> Argv:
    where = [tpu.name, f"--zone={tpu.zone}", f"--project={tpu.project}"]
    return ["gcloud", "compute", "tpus", "queued-resources", verb, *where]


def _vm(verb: str, tpu: Description) -> Argv:
    words = _vm_verb(verb, tpu)
    return [*words[:5], tpu.name, *words[5:]]


def _vm_verb(verb: str, tpu: Description) -> Argv:
    where = [f"--zone={tpu.zone}", f"--project={tpu.project}"]
    return ["gcloud", "compute", "tpus", "tpu-vm", verb, *where]


def _copy(tpu: Description, source: str, target: str) -> Argv:
    keep_mode = "--scp-flag=-p"
    return [*_vm_verb("scp", tpu), keep_mode, "--worker=all", source, f"{tpu.name}:{target}"]
