"""One run as it is monitored: its rows, alarms, checkpoints and settings, read from its folder."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hackmatrix.interface.metric import Severity
from hackmatrix.monitor.follow import Follower
from hackmatrix.monitor.metrics import in_words, metric_of, metric_of_alarm
from hackmatrix.monitor.table import Table
from hackmatrix.reporting.health import RETURN, ROW_KEY, SPEED, alarms_of
from hackmatrix.reporting.metrics import LEARNER_METRICS
from hackmatrix.reporting.rows import AGENTS, SEED
from hackmatrix.runs.folder import CONFIG
from hackmatrix.runs.params import FINAL, agent_folders, numbered_params, seed_of, update_of_params
from hackmatrix.runs.rows import METRICS, Row, parse_row

_RULES = {rule.name: rule for rule in alarms_of(LEARNER_METRICS)}
_MARKED = {"throughput_falling": SPEED}  # the plot that an alarm is marked in, else the return's
_NAMED = {"final": FINAL, "best": "best_params"}  # files of params without a number
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


class Run:
    """A run's folder, and what was read of it so far; `read` reads on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name or path.resolve().name
        self.version = 0  # counts the changes of what was read
        self.unread = 0  # bytes of metrics
        self._follower = Follower(path / METRICS)
        self._config_time: int | None = None
        self.config: dict[str, Any] = {}
        self._start_anew()

    def _start_anew(self) -> None:
        self.table = Table()  # of what all agents share, and of a single agent
        self.agents: dict[int, Table] = {}  # by seed, of many agents
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
        self.table.add(update, row)
        for agent in agents:
            seed = agent.pop(SEED)
            self.agents.setdefault(seed, Table()).add(update, agent)
        seen = {} if agents else row  # the row of many agents has means, which raise no alarm
        self.alarms += [_raised(name, update, seen) for name in names]

    def _read_config(self) -> None:
        path = self.path / CONFIG
        try:
            changed = path.stat().st_mtime_ns
            if changed != self._config_time:
                self._config_time, self.config = changed, _flat(yaml.safe_load(path.read_text()))
                self.version += 1
        except (OSError, ValueError, yaml.YAMLError):
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
    def kind(self) -> str:
        """The same text for runs that differ in their seeds alone."""
        settings = {k: v for k, v in self.config.items() if k not in _NOT_COMPARED}
        return repr(sorted(settings.items(), key=str)) if settings else str(self.path)

    def tables(self, metric: str) -> dict[int | None, Table]:
        """The tables with a metric: of each agent by seed, or the one that they share."""
        found: dict[int | None, Table] = {
            seed: table for seed, table in self.agents.items() if metric in table
        }
        if found:
            return found
        return {None: self.table} if metric in self.table else {}

    def silent_seconds(self) -> float | None:
        """Seconds since the last row was written; None without a file of rows."""
        try:
            return max(0.0, time.time() - (self.path / METRICS).stat().st_mtime)
        except OSError:
            return None

    def saved(self) -> list[Saved]:
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
    for update, path in (paths | numbered_params(folder)).items():
        yield Saved(path, update, seed, labels.get(update, ""))


def _raised(name: str, update: int, row: Mapping[str, Any]) -> Raised:
    rule, metric = _RULES.get(name), metric_of_alarm(name)
    seen = ""
    if metric is not None and (value := row.get(metric)) is not None:
        seen = f"{metric} {in_words(metric_of(metric), value)}: "
    if rule is None:  # of an environment of the user's
        return Raised(name, Severity.WARNING, update, RETURN, name.replace("_", " "))
    where = metric or _MARKED.get(name, RETURN)
    message = f"{seen or rule.when.replace('`', '') + ': '}{rule.advice}"
    return Raised(name, rule.severity, update, where, message)


def _flat(config: Any) -> dict[str, Any]:
    """The settings of all sections of a configuration."""
    sections = config.values() if isinstance(config, dict) else ()
    return {
        str(name): value
        for section in sections
        if isinstance(section, dict)
        for name, value in section.items()
    }


def _whole(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
