"""Weights & Biases: online if it can be reached, else in `{run}/wandb/` for `wandb sync`."""

import json
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from hackmatrix.core.compiled.cache_folder import default_folder
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import write_atomically
from hackmatrix.core.imports import install_command
from hackmatrix.runs.checkpoints import checkpoints_of
from hackmatrix.runs.trackers.tracker import Say, TrackedRun, Unavailable, one_line

INIT_SECONDS = 15.0  # timeout for W&B to start a run; its default is 90
FINISH_SECONDS = 15.0  # timeout for the upload at the run's end; the rest stays on disk
CHECKPOINT = "checkpoint"  # type of artifact
IDENTITY = "wandb.json"  # file in the run's folder with its id at W&B

_MAX_ID = 64  # characters


class NotLoggedIn(Unavailable):
    """The user is not logged in to W&B, which most users never are."""


class WeightsAndBiases:
    """Logs a run with updates as steps; a resumed run continues the same run at W&B."""

    name = "W&B"

    def __init__(self, run: TrackedRun) -> None:
        self._ours = run
        self._name = run.folder.resolve().name
        self._last: tuple[int, Sequence[Path]] | None = None  # checkpoint of an offline run

    def start(self, say: Say) -> None:
        """Starts or continues the run; offline if W&B can't be reached.

        Raises:
            Unavailable: W&B can't be used here.
        """
        self._say = say
        try:
            self._wandb = import_wandb()
        except NotLoggedIn as reason:
            said = f"{reason}; said once on this machine" if _first_time() else ""
            raise Unavailable(said) from None
        except Unavailable as reason:
            raise Unavailable(f"{reason}; --no-wandb leaves out this line") from None
        run_id = read_run_id(self._ours.folder)
        why = "offline, as WANDB_MODE says"
        try:
            self._run = self._begin(run_id)
        except Exception as error:
            why = one_line(error)
            self._run = self._begin(run_id, mode="offline")
        if run_id is None or not self._run.offline:
            identity = {"id": self._run.id, "url": self._run.url}
            write_atomically(self._ours.folder / IDENTITY, f"{json.dumps(identity)}\n".encode())
        self._sync = f"`wandb sync {shlex.quote(str(Path(self._run.dir).parent))}` uploads"
        update = self._ours.update
        if not self._run.offline:
            say(self._run.url)
        elif run_id is not None and self._ours.rewind:
            say(f"{why}; {self._sync} the run later and cuts its history back to update {update:,}")
        else:
            say(f"{why}; {self._sync} the run later")
        if (kept := self._run.starting_step - 1) > update:
            say(f"has rows up to update {kept:,}, which stay as they are; --rewind cuts them off")

    def log(self, update: int, timesteps: int, row: Mapping[str, float], when: float) -> None:
        """Logs all values; W&B shows them when the next update is logged."""
        self._run.log({"timesteps": timesteps, **row}, step=update)

    def alarm(self, update: int, name: str, message: str) -> None:
        """Sends an alert, as the user has set it up at W&B, and adds it to the run's summary."""
        self._run.alert(title=name, text=f"update {update:,}: {message}", level="WARN")
        self._run.summary[f"alarm/{name}"] = f"update {update:,}: {message}"

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        """Uploads a checkpoint; offline only the last one is stored, as each is a copy."""
        if not self._ours.config.get("artifact", True):
            return
        if self._run.offline:
            self._last = update, files
        else:
            self._upload(update, files)

    def finish(self, failed: bool) -> None:
        """Ends the run at W&B."""
        if self._last is not None:
            self._upload(*self._last)
        try:
            self._run.finish(exit_code=int(failed))
        except TimeoutError:
            self._say(f"not all was sent in time; {self._sync} what it has")

    def _begin(self, run_id: str | None, mode: str | None = None) -> Any:
        if run_id is None:
            plain = re.sub(r"[^A-Za-z0-9._-]", "-", self._name)[:_MAX_ID]
            try:
                return self._init(plain, mode, resume="never")
            except self._wandb.errors.UsageError:  # a run on another machine has this id
                other = f"{plain[: _MAX_ID - 7]}-{secrets.token_hex(3)}"
                return self._init(other, mode, resume="never")
        if self._ours.rewind:
            update = self._ours.update
            try:
                return self._init(run_id, mode, resume_from=f"{run_id}?_step={update}")
            except Exception as error:
                self._say(f"can't cut its history back to update {update:,}: {one_line(error)}")
        return self._init(run_id, mode, resume="allow")

    def _init(self, run_id: str, mode: str | None, **how: str) -> Any:
        wandb, config = self._wandb, self._ours.config
        try:
            return wandb.init(
                id=run_id,
                name=self._name,
                project=config.get("project"),
                entity=config.get("entity"),
                config=dict(config),
                allow_val_change=True,  # settings may change when a run resumes
                mode=mode,
                dir=None if "WANDB_DIR" in os.environ else str(self._ours.folder),
                reinit="create_new",  # leaves other runs of this process alone
                settings=wandb.Settings(
                    silent=True,
                    console="off",
                    init_timeout=INIT_SECONDS,
                    finish_timeout=FINISH_SECONDS,
                    finish_timeout_raises=True,
                    git_root=os.getcwd(),  # the run's folder may lie outside the repository
                ),
                **how,
            )
        except Exception:
            wandb.teardown()  # otherwise the id would remain in use
            raise

    def _upload(self, update: int, files: Sequence[Path]) -> None:
        try:
            name = f"{CHECKPOINT}-{self._run.id}"
            artifact = self._wandb.Artifact(name, CHECKPOINT, metadata={"update": update})
            for path in files:
                add = artifact.add_dir if path.is_dir() else artifact.add_file
                inside = path.relative_to(self._ours.folder).as_posix()
                add(str(path), name=inside, skip_cache=True)
            self._run.log_artifact(artifact, aliases=["latest", f"update-{update}"])
        except Exception as error:  # such as a checkpoint that is no longer kept
            self._say(f"the checkpoint of update {update:,} is not uploaded: {one_line(error)}")


def import_wandb() -> Any:
    """Imports `wandb`, ready to be used without a prompt; takes a second.

    Raises:
        Unavailable: it is not installed, is switched off, or the user is `NotLoggedIn`.
    """
    os.environ.setdefault("WANDB_SILENT", "true")  # set before the import, which may print
    try:
        wandb: Any = import_module("wandb")
        setup = wandb.setup  # a folder of W&B's files passes for a module
    except (ImportError, AttributeError):
        raise Unavailable(f"not installed: {install_command('wandb')} brings it") from None
    if (mode := setup().settings.mode) == "disabled":
        raise Unavailable("off, as WANDB_MODE says")
    if mode not in ("offline", "dryrun") and not wandb.login(prompt=False, verify=False):
        wandb.teardown()  # it would not see a later login
        raise NotLoggedIn("not logged in: `wandb login`, or an API key in WANDB_API_KEY, does it")
    return wandb


def _first_time() -> bool:
    """Whether no run on this machine has said yet that the user is not logged in."""
    programs = default_folder()
    if programs is None:
        return True
    try:
        programs.parent.mkdir(parents=True, exist_ok=True)
        (programs.parent / "wandb-not-logged-in").touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        pass
    return True


def read_run_id(run: Path) -> str | None:
    """The id of the run at W&B; None if W&B does not have it yet."""
    try:
        return str(json.loads((run / IDENTITY).read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


# --- Downloads a run that another machine has uploaded to Weights & Biases ------------------------


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
