"""The runs that are monitored: found by name, read on in turns, grouped by what they try."""

import threading
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from hackmatrix.core.errors import UserError, in_words
from hackmatrix.runs.folder import CONFIG, LOGS, TRIALS
from hackmatrix.runs.metrics_file import METRICS_FILE
from hackmatrix.ui.monitor.run import MonitoredRun

MOST_RUNS = 24  # that are shown, the newest of a folder


class RunGroup(NamedTuple):
    """Runs that differ in their seeds alone, or a single run."""

    name: str
    runs: list[MonitoredRun]


def find_runs(paths: Sequence[str], log_dir: Path) -> list[Path]:
    """The folders of runs that are meant.

    Args:
        paths: each a run's folder, its `metrics.jsonl`, the name of a run in `log_dir`, a folder of
            runs, the newest first, or the folder of a search, for its trials. Without words the
            newest run in `log_dir`, which may also be a run itself.
        log_dir: folder of runs.

    Raises:
        UserError: there is no such run.
    """
    if not paths:
        if log_dir.name == LOGS and _is_run(log_dir.parent):
            return [log_dir.parent]
        return [log_dir] if _is_run(log_dir) else runs_in(log_dir)[:1]
    found = [run for word in paths for run in _runs_of_path(word, log_dir)]
    return list(dict.fromkeys(found))


def runs_in(folder: Path) -> list[Path]:
    """The runs in a folder, those first whose metrics were written last.

    Raises:
        UserError: there are none, or it can't be read.
    """
    try:
        runs = [path for path in folder.iterdir() if _is_run(path)]
    except FileNotFoundError:
        raise UserError(f"{folder}: no such folder of runs") from None
    except OSError as error:
        raise UserError(in_words(error)) from None
    if not runs:
        raise UserError(f"{folder}: no run in it (a folder with {METRICS_FILE} or {CONFIG})")
    return sorted(runs, key=_time_written, reverse=True)


def _runs_of_path(word: str, log_dir: Path) -> list[Path]:
    path = _folder(word, log_dir)
    if _is_run(path):
        return [path]
    if (path / TRIALS).is_dir():
        path = path / TRIALS
    if path.is_dir():
        return runs_in(path)
    known = sorted(each.name for each in log_dir.iterdir()) if log_dir.is_dir() else []
    there = f"; in {log_dir} there are {', '.join(known[:8])}" if known else ""
    raise UserError(f"{word}: no such run{there}")


def _folder(word: str, log_dir: Path) -> Path:
    path = Path(word)
    if path.name == METRICS_FILE:
        path = path.parent
    named = log_dir / word
    is_name = not path.exists() and (_is_run(named) or (named / TRIALS).is_dir())
    return named if is_name else path


def _is_run(path: Path) -> bool:
    return any((path / name).is_file() for name in (METRICS_FILE, CONFIG))


def _time_written(run: Path) -> float:
    return max(
        (run / name).stat().st_mtime for name in (METRICS_FILE, CONFIG) if (run / name).is_file()
    )


class Runs:
    """The runs that are monitored. Threads that use them hold `lock`, and `read` takes it too."""

    def __init__(self, paths: Sequence[str], log_dir: Path) -> None:
        """Finds the runs.

        Raises:
            UserError: see `find_runs`.
        """
        self._paths, self._log_dir = paths, log_dir
        self.lock = threading.Lock()
        found = find_runs(paths, log_dir)
        self.runs = [MonitoredRun(path) for path in found[:MOST_RUNS]]
        self.num_found = len(found)  # number of runs that are meant
        self.problem: str | None = None  # why a file can't be read

    @property
    def version(self) -> str:
        """Changes when something was read."""
        return "-".join(str(run.version) for run in self.runs)

    def read(self) -> bool:
        """Reads a piece of what is new of every run; returns whether more of it waits."""
        with self.lock:
            self.problem, waits = None, False
            for run in self.runs:
                try:
                    waits |= run.read()
                except OSError as error:
                    self.problem = in_words(error)
            return waits

    def read_all(self) -> None:
        """Reads all that is new."""
        while self.read():
            pass

    def find_more(self) -> None:
        """Adds runs that have appeared in the folders of runs since."""
        try:
            paths = find_runs(self._paths, self._log_dir) if self._paths else []
        except UserError:
            return
        with self.lock:
            known = {run.path for run in self.runs}
            self.runs += [MonitoredRun(path) for path in paths[:MOST_RUNS] if path not in known]
            self.num_found = len(known.union(paths))

    @property
    def notice(self) -> str | None:
        """A line about runs that are not shown."""
        if len(self.runs) == self.num_found:
            return None
        shown = f"{len(self.runs)} of {self.num_found} runs are shown"
        return f"{shown}, the newest; name others to see them"

    def pictures(self) -> dict[str, Path]:
        """The plots of the searches that are monitored, by name."""
        folders = [_folder(word, self._log_dir) for word in self._paths]
        folders = [folder for folder in folders if (folder / TRIALS).is_dir()]
        found = [path for folder in folders for path in sorted(folder.glob("*.svg"))]
        found = [path for path in found if path.is_file() and not path.is_symlink()]
        alone = len(folders) == 1
        return {path.stem if alone else f"{path.parent.name} {path.stem}": path for path in found}

    def groups(self) -> list[RunGroup]:
        """The runs in groups, in the order of their first runs."""
        kinds: dict[str, list[MonitoredRun]] = {}
        for run in self.runs:
            kinds.setdefault(run.settings_key, []).append(run)
        return [RunGroup(_name(runs), runs) for runs in kinds.values()]


def _name(runs: Sequence[MonitoredRun]) -> str:
    names = [run.name for run in runs]
    if len(names) == 1:
        return names[0]
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    common = "".join(letters[0] for letters in alike)
    return f"{common}*" if common else f"{names[0]} and {len(names) - 1} more"
