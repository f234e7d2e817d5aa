"""Files of this machine that a TPU is made with: the set-up script, and code that is not cloned."""

import subprocess
import time
from datetime import datetime, timedelta
from pathlib import Path

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hosts import setup_script
from hackmatrix.core.errors import UserError

_GRACE = timedelta(hours=1)  # after the end date, for `hackmatrix tpu run` to fetch the run


def folder_of(tpu: Description) -> Path:
    """The folder of the files."""
    return Path.home() / ".hackmatrix" / "tpu" / tpu.name


def create(
    tpu: Description, *, directly: bool = False, dry_run: bool = False
) -> list[commands.Argv]:
    """The lines that ask for a TPU, or with `directly` make it; their files unless `dry_run`.

    Raises:
        UserError: only the queue has TPUs for a limited time.
    """
    if directly and tpu.flex_hours is not None:
        raise UserError("flex_hours: such TPUs come from the queue alone: leave --direct out")
    code, script = _write_set_up(tpu, dry_run=dry_run)
    make = commands.create_directly if directly else commands.create
    return [*code, make(tpu, script)]


def set_up(tpu: Description, *, update: bool = False, dry_run: bool = False) -> list[commands.Argv]:
    """The lines that set the hosts up, with `update` with the newest code; their files likewise."""
    code, script = _write_set_up(tpu, dry_run=dry_run)
    return [*code, *commands.set_up(tpu, script, update=update)]


def _write_set_up(tpu: Description, *, dry_run: bool) -> tuple[list[commands.Argv], Path]:
    """The lines that upload the code, if it is a folder here, and the set-up script's file.

    With `dry_run` the files have their names, and are not written.

    Raises:
        UserError: the folder is no git repository.
    """
    folder = folder_of(tpu)
    if not dry_run:
        folder.mkdir(parents=True, exist_ok=True)
    script, commit, lines = folder / "setup.sh", "", []
    if tpu.is_local:
        repo = Path(tpu.repo).expanduser()
        commit = _git(repo, "rev-parse", "HEAD").strip()
        archive = folder / f"{commit}.tar.gz"
        if not dry_run:
            _git(repo, "archive", "--format=tar.gz", f"--output={archive}", "HEAD")
        lines = [commands.upload_code(tpu, archive)]
    if not dry_run:
        text = setup_script(tpu, commit, _end(tpu), time.time())
        script.write_text(text, encoding="utf-8")
    return lines, script


def _git(repo: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(repo), *arguments], capture_output=True, text=True)
    except FileNotFoundError:
        raise UserError(f"repo: {repo} needs git, which is not installed") from None
    if done.returncode:
        raise UserError(f"repo: {repo}: {done.stderr.strip()}")
    return done.stdout


def _end(tpu: Description) -> int | None:
    """The time at which the TPU deletes itself, in seconds since 1970."""
    if tpu.last_day is None:
        return None
    midnight = datetime.combine(tpu.last_day + timedelta(days=1), datetime.min.time())
    return int((midnight.astimezone() + _GRACE).timestamp())
