"""The training as lines of a shell, for services that make machines anew."""

import shlex

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import HOST_FOLDER, compile_cache
from hackmatrix.core.errors import UserError


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
