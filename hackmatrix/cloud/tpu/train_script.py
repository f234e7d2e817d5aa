"""The training as lines of a shell, for services that make machines anew."""

import shlex

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import PLACE
from hackmatrix.core.errors import UserError


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
