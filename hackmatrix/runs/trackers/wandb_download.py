"""Downloads a run that another machine has uploaded to Weights & Biases."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from hackmatrix.core.errors import UserError
from hackmatrix.runs.checkpoints import checkpoints_of
from hackmatrix.runs.trackers.tracker import Unavailable, one_line
from hackmatrix.runs.trackers.weights_and_biases import CHECKPOINT, IDENTITY, import_wandb

_ANSWER_SECONDS = 10  # timeout of a request to W&B


def download_run(run_id: str, folder: Path, *, project: str, entity: str | None) -> Path:
    """Creates a run's folder with the newest checkpoint that the run has uploaded.

    Args:
        run_id: the run's id at W&B.
        folder: the folder to create; it appears when it is complete.
        project: the project at W&B.
        entity: a team; None for the user's default.

    Returns:
        `folder`; resuming it continues the same run at W&B.

    Raises:
        UserError: W&B can't be used or reached, or has no such run or no checkpoint of it.
    """
    problem = f"--resume-run {run_id}: there is no run {folder}, and W&B"
    path = "/".join(part for part in (entity, project, run_id) if part)
    partial = folder.with_name(f".{folder.name}.download-{os.getpid()}")
    try:
        wandb = import_wandb()
        if (mode := wandb.setup().settings.mode) != "online":
            raise UserError(f"{problem} is not asked, as WANDB_MODE is {mode}")
        artifact = _newest_checkpoint(wandb.Api(timeout=_ANSWER_SECONDS).run(path))
        if artifact is None:
            raise UserError(f"{problem} has no checkpoint of {path}")
        artifact.download(root=str(partial), skip_cache=True)
        if not checkpoints_of(partial):
            raise UserError(f"{problem}: {artifact.name} of {path} holds no checkpoint")
        (partial / IDENTITY).write_text(json.dumps({"id": run_id}) + "\n", encoding="utf-8")
        partial.rename(folder)
    except UserError:
        raise
    except Unavailable as reason:
        raise UserError(f"{problem} is {reason}") from None
    except Exception as error:  # many types, also if there is no such run
        raise UserError(f"{problem} does not give {path}: {one_line(error)}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _newest_checkpoint(run: Any) -> Any:
    uploaded = [
        artifact
        for artifact in run.logged_artifacts()
        if artifact.type == CHECKPOINT and artifact.state == "COMMITTED"
    ]
    return max(uploaded, key=lambda artifact: int(artifact.version[1:]), default=None)
