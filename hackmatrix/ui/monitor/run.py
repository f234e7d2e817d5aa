"""One run as it is monitored: its rows, alarms, checkpoints and settings, read from its folder."""

import hashlib
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO, NamedTuple

from hackmatrix.core.errors import UserError
from hackmatrix.core.streams import clean
from hackmatrix.core.yaml_file import read_yaml
from hackmatrix.environments.interface.metric import Severity
from hackmatrix.learning.reporting.alarms import NOT_FINITE, RETURN, ROW_KEY, SPEED, alarms_of
from hackmatrix.learning.reporting.metrics import AGENTS, LEARNER_METRICS, SEED
from hackmatrix.runs.checkpoints import plays_hackmatrix
from hackmatrix.runs.folder import CONFIG
from hackmatrix.runs.metrics_file import METRICS_FILE, Row, parse_row
from hackmatrix.runs.params import (
    FINAL,
    agent_folders,
    facts_of_params,
    numbered_params,
    seed_of,
    update_of_params,
)
from hackmatrix.ui.monitor.curves import MetricColumns, is_finite
from hackmatrix.ui.monitor.metric_groups import in_words, metric_of, metric_of_alarm

_RULES = {rule.name: rule for rule in alarms_of(LEARNER_METRICS)}
_MARKED = {"throughput_falling": SPEED}  # the plot that an alarm is marked in, else the return's
_NAMED = {"final": FINAL, "best": "best_params"}  # files of params without a number
_MOST = 2**53  # of a whole number in a configuration
_NOT_COMPARED = ("seed", "num_seeds", "checkpoint_dir", "project", "entity", "device")


class Raised(NamedTuple):
    """An alarm of a run."""

    name: str
    severity: Severity
    update: int
    metric: str  # whose plot shows it
    message: str


class Saved(NamedTuple):
    """Params of an agent in a run's folder."""

    path: Path
    update: int
    seed: int | None  # None in a run with one agent
    label: str  # "best", "final" or nothing
    playable: bool  # whether it plays HackMatrix, so that `hackmatrix watch` shows it


def key_of(path: Path) -> str:
    """The name in addresses of a file or folder, which tells nothing of where it is."""
    return hashlib.sha256(str(path).encode()).hexdigest()[:16]


class MonitoredRun:
    """A run's folder, and what was read of it so far; `read` reads on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = re.sub("[\n\t]", "?", clean(path.name or path.resolve().name))
        self.version = 0  # counts the changes of what was read
        self.unread = 0  # bytes of metrics
        self._follower = Follower(path / METRICS_FILE)
        self._config_time: int | None = None
        self.config: dict[str, Any] = {}
        self._start_anew()

    def _start_anew(self) -> None:
        self.table = MetricColumns()  # of what all agents share, and of a single agent
        self.agents: dict[int, MetricColumns] = {}  # by seed, of many agents
        self.alarms: list[Raised] = []

    def read(self) -> bool:
        """Reads a piece of what is new; returns whether more of it waits.

        Raises:
            OSError: a file can't be read.
        """
        self._read_config()
        news = self._follower.read()
        if news.anew:
            self._start_anew()
        for line in news.lines:
            if (row := parse_row(line)) is not None:
                self._add(row)
        self.version += news.anew or bool(news.lines)
        self.unread = news.unread
        return bool(news.unread)

    def _add(self, row: Row) -> None:
        update = row.pop("update")
        names = row.pop(ROW_KEY, ())
        agents = row.pop(AGENTS, ())
        if self.alarms and self.table.updates and update < self.table.updates[-1]:
            self.alarms = [alarm for alarm in self.alarms if alarm.update < update]
        if NOT_FINITE.name not in names:  # the run says so once, and its evaluations never do
            self.alarms += self._check_finite(update, row)
        self.table.add(update, row)
        for agent in agents:
            seed = agent.pop(SEED)
            self.agents.setdefault(seed, MetricColumns()).add(update, agent)
        seen = {} if agents else row  # the row of many agents has means, which raise no alarm
        self.alarms += [_alarm_of(name, update, seen) for name in names]

    def _check_finite(self, update: int, row: Row) -> Iterator[Raised]:
        """An alarm for metrics that are not finite in this row, but were in the one before."""
        broken = (name for name, value in row.items() if not is_finite(value))
        if names := [name for name in broken if not self._is_broken(name)]:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            message = f"{names[0]}{more} NaN or infinite: {NOT_FINITE.advice}"
            yield Raised(NOT_FINITE.name, NOT_FINITE.severity, update, names[0], message)

    def _is_broken(self, name: str) -> bool:
        last = self.table.last(name)
        return last is not None and math.isinf(last[1])

    def _read_config(self) -> None:
        path = self.path / CONFIG
        try:
            status = path.stat()
            if not S_ISREG(status.st_mode) or status.st_mtime_ns == self._config_time:
                return
            self._config_time = status.st_mtime_ns
            self.config = _flat(read_yaml(path))
            self.version += 1
        except (OSError, UserError):
            return  # it can be drawn without

    @property
    def num_seeds(self) -> int:
        """Number of agents of the run."""
        return max(1, len(self.agents), _whole(self.config.get("num_seeds")))

    @property
    def total(self) -> int:
        """Number of timesteps that the run is to make; 0 if it is not known."""
        return _whole(self.config.get("total_timesteps"))

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings, but for those that do not matter to what is learned."""
        return {k: v for k, v in self.config.items() if k not in _NOT_COMPARED}

    @property
    def settings_key(self) -> str:
        """The same text for runs that differ in their seeds alone."""
        settings = self.settings
        return repr(sorted(settings.items(), key=str)) if settings else str(self.path)

    def tables(self, metric: str) -> dict[int | None, MetricColumns]:
        """The tables with a metric: of each agent by seed, or the one that they share."""
        found: dict[int | None, MetricColumns] = {
            seed: table for seed, table in self.agents.items() if metric in table
        }
        if found:
            return found
        return {None: self.table} if metric in self.table else {}

    def silent_seconds(self) -> float | None:
        """Seconds since the last row was written; None without a file of rows."""
        try:
            return max(0.0, time.time() - (self.path / METRICS_FILE).stat().st_mtime)
        except OSError:
            return None

    def saved_params(self) -> list[Saved]:
        """The params in the run's folder, the newest first; the best and the final are named."""
        found = list(_saved_in(self.path, None))
        for folder in agent_folders(self.path):
            found += _saved_in(folder, seed_of(folder))
        return sorted(found, key=lambda each: (-each.update, each.seed or 0))


def _saved_in(folder: Path, seed: int | None) -> Iterator[Saved]:
    labels: dict[int, str] = {}
    paths: dict[int, Path] = {}
    for label, name in _NAMED.items():
        if (update := update_of_params(folder, name)) is not None:
            labels[update], paths[update] = label, folder / f"{name}.npz"
    paths |= numbered_params(folder)
    playable = bool(paths) and plays_hackmatrix(facts_of_params(folder, paths[max(paths)].stem))
    for update, path in paths.items():
        yield Saved(path, update, seed, labels.get(update, ""), playable)


def _alarm_of(name: str, update: int, row: Mapping[str, Any]) -> Raised:
    rule, metric = _RULES.get(name), metric_of_alarm(name)
    measured = ""
    if metric is not None and (value := row.get(metric)) is not None:
        measured = f"{metric} {in_words(metric_of(metric), value)}: "
    if rule is None:  # of an environment of the user's
        return Raised(name, Severity.WARNING, update, RETURN, name.replace("_", " "))
    where = metric or _MARKED.get(name, RETURN)
    message = f"{measured or rule.when.replace('`', '') + ': '}{rule.advice}"
    return Raised(name, rule.severity, update, where, message)


def _flat(config: Mapping[Any, Any]) -> dict[str, Any]:
    """The settings of all sections of a configuration; the environment's name is `env`."""
    return {
        "env" if (section, name) == ("environment", "name") else str(name): value
        for section, settings in config.items()
        if isinstance(settings, dict)
        for name, value in settings.items()
    }


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 < value <= _MOST else 0


# --- Follows a file of lines that another process appends to, cuts off or replaces ----------------


MOST_BYTES = 2**20  # of one reading, so that a long file is read in pieces
LONGEST_LINE = 2**26  # bytes; a row of a thousand agents has a few million
_REMEMBERED = 256  # bytes before the place up to which the file was read


class News(NamedTuple):
    """The result of one reading."""

    anew: bool  # the file was cut off or replaced: the lines of earlier readings no longer count
    lines: list[bytes]  # complete ones, without their ends
    unread: int  # bytes that the next reading will find


class Follower:
    """Remembers up to which place a file was read; the file need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._before = b""  # what stands before that place
        self._identity: tuple[int, int] | None = None

    def read(self) -> News:
        """Reads complete lines from the place of the last reading on, or from the beginning.

        A last line without its end waits until it is complete. A file that is missing has no news.

        Raises:
            OSError: the file can't be read.
        """
        try:
            if self._path.exists() and not self._path.is_file():
                return News(False, [], 0)  # a pipe would keep its reader waiting
            file = self._path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            return News(False, [], 0)
        with file:
            status = os.fstat(file.fileno())
            identity = (status.st_dev, status.st_ino)
            anew = self._identity is not None and not self._continues(file, identity)
            if anew:
                self._offset, self._before = 0, b""
            self._identity = identity
            file.seek(self._offset)
            data = file.read(MOST_BYTES)
            if b"\n" not in data:
                data += file.readline(LONGEST_LINE)
        is_endless = len(data) > LONGEST_LINE and b"\n" not in data  # no row of metrics
        end = len(data) if is_endless else data.rfind(b"\n") + 1
        self._offset += end
        self._before = (self._before + data[:end])[-_REMEMBERED:]
        unread = max(0, status.st_size - self._offset) if end else 0
        return News(anew, data[:end].splitlines(), unread)

    def _continues(self, file: BinaryIO, identity: tuple[int, int]) -> bool:
        """Whether the file still begins with what was read of it, as far as one can tell."""
        if identity != self._identity:
            return False
        file.seek(self._offset - len(self._before))
        return file.read(len(self._before)) == self._before
