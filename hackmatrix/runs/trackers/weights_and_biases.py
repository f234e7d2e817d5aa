"""Weights & Biases: online where it can be reached, else in `{run}/wandb/` for `wandb sync`."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.runs.trackers.background import Row, Say, Unavailable, one_line
from hackmatrix.runs.trackers.wandb_access import open_wandb
from hackmatrix.storage.files import write_atomically

PROBE_SECONDS = 2.0  # for the host to answer
INIT_SECONDS = 15.0  # for W&B to begin a run; it would take 90
UPLOAD_SECONDS = 15.0  # for what is left at the run's end; the rest stays on the disk
CHECKPOINT = "checkpoint"  # type of artifact
IDENTITY = "wandb.json"  # in the run's folder: which run it is at W&B

_MAX_ID = 64  # characters


class WandbSettings(NamedTuple):
    """How a run uses W&B."""

    project: str
    entity: str | None = None  # a team; None: the user's default
    artifact: bool = True  # upload checkpoints
    rewind: bool = False  # cut the history back to where the run goes on


class WeightsAndBiases:
    """Logs a run; one that goes on is the same run at W&B, with the updates as steps.

    Args:
        run: the run's folder.
        config: shown with the run.
        update: where it goes on.
        settings: how W&B is used.
    """

    name = "W&B"
    finish_seconds = UPLOAD_SECONDS + 1
    rest = ""

    def __init__(
        self, run: Path, config: Mapping[str, Any], update: int, settings: WandbSettings
    ) -> None:
        self._path = run
        self._config = dict(config)
        self._update = update
        self._settings = settings
        self._newest: tuple[int, Sequence[Path]] | None = None
        self._upload_failed = self._abandoned = False

    def start(self, say: Say) -> None:
        """Begins the run, or goes on with it.

        Raises:
            Unavailable: W&B can't be used here.
        """
        self._say = say
        try:
            self._wandb, offline = open_wandb(PROBE_SECONDS)
        except Unavailable as reason:
            raise Unavailable(f"{reason}; --no-wandb leaves out this line") from None
        known = known_id(self._path)
        if offline is None:
            try:
                self._run = self._begin(known, None)
            except Exception as error:
                offline = one_line(error)
        if offline is not None:
            self._run = self._begin(known, "offline")
        self._online = offline is None
        if self._online or known is None:
            identity = {"id": self._run.id, "url": self._run.url}
            write_atomically(self._path / IDENTITY, f"{json.dumps(identity)}\n".encode())
        sync = f"`wandb sync {shlex.quote(str(Path(self._run.dir).parent))}`"
        self.rest = f"; {sync} uploads what it has"
        if offline is None:
            say(self._run.url)
        else:
            cuts = known is not None and self._settings.rewind
            also = f" and cuts its history back to update {self._update:,}" if cuts else ""
            say(f"{offline}; {sync} uploads the run later{also}")
        if (kept := self._run.starting_step - 1) > self._update:
            say(f"has rows up to update {kept:,}, which stay as they are; --rewind cuts them off")

    def log(self, update: int, timesteps: int, row: Row, when: float) -> None:
        """Logs all values; W&B shows them when it gets those of another update."""
        values = {name: float(value) for name, value in row.items()}
        self._run.log({"timesteps": timesteps, **values}, step=update)

    def alarm(self, update: int, name: str, message: str) -> None:
        """Alerts the user as they have set up at W&B, and notes it in the run's summary."""
        self._run.alert(title=name, text=f"update {update:,}: {message}", level="WARN")
        self._run.summary[f"alarm/{name}"] = f"update {update:,}: {message}"

    def artifact(self, update: int, files: Sequence[Path]) -> None:
        """Uploads a checkpoint; offline only the last one is kept, as each is a copy."""
        if not self._settings.artifact:
            return
        if self._online:
            self._upload(update, files)
        else:
            self._newest = update, files

    def flush(self) -> None:
        """W&B sends when it likes."""

    def finish(self, failed: bool) -> None:
        """Ends the run at W&B."""
        if self._newest is not None:
            self._upload(*self._newest)
        try:
            self._run.finish(exit_code=int(failed))
        except TimeoutError:
            self._say(f"not all was sent in time{self.rest}")

    def abandon(self) -> None:
        """Ends W&B's process, for which this one would wait at its exit."""
        self._abandoned = True
        with contextlib.suppress(BaseException):  # W&B offers no other way
            self._wandb.sdk.wandb_setup._singleton._connection._proc._process.kill()
            self._wandb.teardown()

    def _begin(self, known: str | None, mode: str | None) -> Any:
        if known is None:
            new = id_of(self._path.resolve().name)
            try:
                return self._init(new, mode, resume="never")
            except self._wandb.errors.UsageError:  # a run on another machine has this name
                other = f"{new[: _MAX_ID - 7]}-{secrets.token_hex(3)}"
                return self._init(other, mode, resume="never")
        if self._settings.rewind:
            try:
                return self._init(known, mode, resume_from=f"{known}?_step={self._update}")
            except Exception as error:
                self._say(
                    f"can't cut its history back to update {self._update:,}: {one_line(error)}"
                )
        return self._init(known, mode, resume="allow")

    def _init(self, run_id: str, mode: str | None, **how: str) -> Any:
        if self._abandoned:
            raise Unavailable("left behind")
        wandb = self._wandb
        try:
            return wandb.init(
                id=run_id,
                name=self._path.resolve().name,
                project=self._settings.project,
                entity=self._settings.entity,
                config=self._config,
                allow_val_change=True,  # settings may change when a run goes on
                mode=mode,
                dir=None if "WANDB_DIR" in os.environ else str(self._path),
                reinit="create_new",  # leaves other runs of this process alone
                settings=wandb.Settings(
                    silent=True,
                    console="off",
                    init_timeout=INIT_SECONDS,
                    finish_timeout=UPLOAD_SECONDS,
                    finish_timeout_raises=True,
                    git_root=os.getcwd(),  # the run's folder may lie outside the repository
                ),
                **how,
            )
        except BaseException:
            with contextlib.suppress(BaseException):
                wandb.teardown()  # else the id would be in use
            raise

    def _upload(self, update: int, files: Sequence[Path]) -> None:
        try:
            artifact = self._wandb.Artifact(
                f"{CHECKPOINT}-{self._run.id}", CHECKPOINT, metadata={"update": update}
            )
            for path in files:
                add = artifact.add_dir if path.is_dir() else artifact.add_file
                add(str(path), name=path.relative_to(self._path).as_posix(), skip_cache=True)
            self._run.log_artifact(artifact, aliases=["latest", f"update-{update}"])
        except Exception as error:
            if not self._upload_failed:
                self._upload_failed = True
                self._say(f"the checkpoint of update {update:,} is not uploaded: {one_line(error)}")


def id_of(name: str) -> str:
    """The id that follows from a run's name: the name itself where W&B can take it."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", name)
    if plain == name and len(name) <= _MAX_ID:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain[: _MAX_ID - 9]}-{digest}"


def known_id(run: Path) -> str | None:
    """The id under which W&B knows a run; None: it does not."""
    try:
        return str(json.loads((run / IDENTITY).read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
