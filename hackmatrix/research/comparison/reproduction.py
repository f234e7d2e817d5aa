"""A run trained again from what its folder records, and compared with it bit for bit.

The run's folder is only read. Its rows must be those of the new run, apart from their speed, and
its newest and best params too: older ones belong to checkpoints that were saved by the clock.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.environments.registry import check_code
from hackmatrix.learning.reporting.alarms import ROW_KEY, SPEED, THROUGHPUT_FALLING
from hackmatrix.learning.reporting.console import Console
from hackmatrix.learning.reporting.metrics import AGENTS, SEED
from hackmatrix.learning.run.loop import RunOutcome, train
from hackmatrix.learning.run.snapshots import start_facts
from hackmatrix.learning.settings.config import LOGGING, OPTIONS, TrainConfig, TrainOptions
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.devices import choose_devices
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.research.evaluation.jax_agents import make_evaluate
from hackmatrix.runs.exports import BEST
from hackmatrix.runs.folder import CONFIG, STARTS, starts_in
from hackmatrix.runs.metrics_file import Row, read_metrics
from hackmatrix.runs.params import Exported, agent_folders, flat, load_params, newest_params

_CIRCUMSTANCES = ("device", "processor", "devices", "commit")  # of a start, besides versions
_PATHS_AND_DEVICES = {
    "checkpoint_dir",
    "init_from",
    "device",
}  # settings that may differ from row to row
_ALL = 1_000_000  # checkpoints to keep


class RecordedRun(NamedTuple):
    """What a run's folder says of it."""

    run: Path
    config: TrainConfig
    rows: list[Row]
    params: dict[str, Exported]  # the newest and the best of each agent, by their path in the run
    differences: list[str]  # between then and now, with which nothing is promised

    @property
    def update(self) -> int | None:
        """The update of the newest params; None if there are none, or it is not known."""
        updates = [each.about.get("update") for each in self.params.values()]
        return max((update for update in updates if isinstance(update, int)), default=None)


class Reproduction(NamedTuple):
    """A run beside the one that was trained again."""

    rows: int
    unequal_rows: list[str]  # what differs first in each
    params: dict[str, str | None]  # what differs, by their path in the run
    differences: list[str]

    @property
    def is_equal(self) -> bool:
        """Whether every row and every param is equal, bit for bit."""
        return not self.unequal_rows and not any(self.params.values())

    def as_dict(self) -> dict[str, Any]:
        """The output of `--json`."""
        return {"equal": self.is_equal, **self._asdict()}

    def text(self) -> str:
        """The verdict on a few lines."""
        lines = [f"rows    {self.rows - len(self.unequal_rows):,} of {self.rows:,} are equal"]
        lines += [f"        {each}" for each in self.unequal_rows[:1]]
        equal = sum(each is None for each in self.params.values())
        lines.append(f"params  {equal} of {len(self.params)} files are equal, bit for bit")
        lines += [f"        {name}: {how}" for name, how in self.params.items() if how is not None]
        verdict = "reproduced" if self.is_equal else "NOT reproduced"
        if not self.is_equal and self.differences:
            verdict += f"; equality was not promised: {'; '.join(self.differences)}"
        return "\n".join([*lines, verdict])


def read_recorded(run: Path, env: str | None) -> RecordedRun:
    """Reads a run, and finds what is different from when it was trained.

    Args:
        run: its folder.
        env: the environment that the user names.

    Raises:
        UserError: it is no run, or none that can be trained again here, its params are damaged, or
            it trained on code that the user does not name.
    """
    if not (run / CONFIG).is_file():
        raise UserError(f"{run}: is no folder of a run, it holds no {CONFIG}")
    config, _ = resolve({}, read_config(run / CONFIG))
    check_code(config.environment.name, env, f"{run}: trained on")
    config.network.check_code(f"{run}: its network is")
    if config.run.distributed:
        raise UserError(f"{run}: was trained by several processes, which is not done again here")
    starts = starts_in((run / STARTS).read_bytes()) if (run / STARTS).exists() else []
    if starts and starts[0]["update"] > 0:
        raise UserError(
            f"{run}: goes on from update {starts[0]['update']:,} of another run, so it has no "
            "beginning: reproduce that one"
        )
    if starts and config.run.init_from is None and (path := _resumed_params(starts[0])):
        config = config.but(init_from=Path(path))
    rows, params = list(read_metrics(run)), dict(_params_of(run))
    if not rows and not params:
        raise UserError(f"{run}: has neither rows of metrics nor params: nothing can be compared")
    now = start_facts(0, choose_devices(config)[0])
    differences = _since(starts, now) + _changed_settings(config, params)
    return RecordedRun(run, config, rows, params, differences)


def train_again(recorded: RecordedRun, folder: Path, console: Console) -> RunOutcome:
    """Trains with the settings of a run, from its beginning, in a new folder.

    Raises:
        UserError: the folder is the run's or is not empty, or the settings don't fit this machine.
    """
    if folder.resolve().is_relative_to(recorded.run.resolve()):
        raise UserError(f"--output-dir {folder}: lies in the run, to which nothing is written")
    config = recorded.config.but(
        checkpoint_dir=folder.parent, tensorboard=False, wandb=False, keep_checkpoints=_ALL
    )
    if recorded.update:  # so that the same params are exported
        config = config.but(save_interval=recorded.update, save_interval_timesteps=None)
    options = TrainOptions(output_dir=folder)
    return train(config, options, console, make_evaluate=make_evaluate)


def compare(recorded: RecordedRun, again: Path) -> Reproduction:
    """A run beside the one that was trained again in another folder."""
    rows = list(read_metrics(again))
    rows += [{}] * (len(recorded.rows) - len(rows))
    unequal = [_difference(*pair) for pair in zip(recorded.rows, rows, strict=False)]
    params = {
        name: _params_difference(each, _counterpart(each, again / name))
        for name, each in recorded.params.items()
    }
    until = recorded.update or 0  # which no run has without the rows before it
    lost = [row["update"] for row in rows[len(recorded.rows) :] if row["update"] <= until]
    unequal += [f"update {update:,}: there is no row" for update in lost]
    found = [each for each in unequal if each is not None]
    return Reproduction(len(recorded.rows) + len(lost), found, params, recorded.differences)


def _params_of(run: Path) -> Iterator[tuple[str, Exported]]:
    for folder in agent_folders(run) or [run]:
        best = folder / f"{BEST}.npz"
        for path in (newest_params(folder), best if best.exists() else None):
            if path is not None:
                yield str(path.relative_to(run)), load_params(path)


def _resumed_params(start: Mapping[str, Any]) -> str | None:
    """The file of params that the command named by `--resume`, if it did."""
    command = start.get("command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    for place, word in enumerate(words):
        flag, sign, value = word.partition("=")
        if flag in ("--resume", "--resume-from"):
            named = value if sign else "".join(words[place + 1 : place + 2])
            return named if named.endswith(".npz") else None
    return None


def _since(starts: list[dict[str, Any]], now: Mapping[str, Any]) -> list[str]:
    """What is different from when the processes of a run started."""
    if not starts:
        return [f"no {STARTS} tells with which version and on which machine it was trained"]
    changes: dict[str, None] = {}
    for then in starts:
        before, after = _circumstances(then), _circumstances(now)
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                changes[f"{name} was {before.get(name)}, is {after.get(name)}"] = None
        if str(then.get("commit", "")).endswith("+"):
            changes["the code then had changes that are in no commit"] = None
    return sorted(changes)


def _circumstances(start: Mapping[str, Any]) -> dict[str, Any]:
    versions = start.get("versions")
    known = {name: start.get(name) for name in _CIRCUMSTANCES}
    return {**known, **(versions if isinstance(versions, dict) else {})}


def _changed_settings(config: TrainConfig, params: Mapping[str, Exported]) -> list[str]:
    """The settings that are not those with which params of the run were trained."""
    now, changes = config.as_dict(), set[str]()
    logging = {name for name, option in OPTIONS.items() if option.section == LOGGING}
    # What differs between agents of a run, or has no influence on them.
    left_out = logging | _PATHS_AND_DEVICES | {"seed", "num_seeds"}
    for each in params.values():
        then = each.about.get("config", {})
        for name in (then.keys() & now.keys()) - left_out:
            if then[name] != now[name]:
                changes.add(f"{name} was {then[name]} while it trained, is {now[name]} in {CONFIG}")
    return sorted(changes)


def _difference(then: Row, now: Row) -> str | None:
    """What differs first between two rows, apart from their speed."""
    one, other = _lasting(then), _lasting(now)
    for name in dict.fromkeys([*one, *other]):
        if one.get(name) != other.get(name) or (name in one) != (name in other):
            values = f"{_short(one.get(name))} then, {_short(other.get(name))} now"
            return f"update {then['update']:,}: {name} was {values}"
    return None


def _lasting(row: Row) -> Row:
    """The row without its speed, and the values of its agents by names of their own."""
    kept = {name: x for name, x in row.items() if name not in (SPEED, ROW_KEY, AGENTS)}
    for agent in row.get(AGENTS, []):
        kept |= {f"{name} of seed {agent[SEED]}": x for name, x in agent.items()}
    alarms = [name for name in row.get(ROW_KEY, []) if name != THROUGHPUT_FALLING.name]
    return kept | ({ROW_KEY: alarms} if alarms else {})


def _short(value: Any) -> str:
    return f"{value!r:.60}"


def _counterpart(then: Exported, path: Path) -> Path | None:
    """The file with params of the same name; else with those of the same update."""
    numbered = path.with_name(f"params_{then.about.get('update')}.npz")
    return next((each for each in (path, numbered) if each.exists()), None)


def _params_difference(then: Exported, path: Path | None) -> str | None:
    """What differs between params; None if they are equal, bit for bit."""
    if path is None:
        return "was not made again"
    now = load_params(path)
    if then.about.get("update") != now.about.get("update"):
        return f"was of update {then.about.get('update')}, is of {now.about.get('update')}"
    one, other = dict(flat(then.params)), dict(flat(now.params))
    for name in dict.fromkeys([*one, *other]):
        ours, theirs = one.get(name), other.get(name)
        if (
            ours is None
            or theirs is None
            or (ours.dtype, ours.shape)
            != (
                theirs.dtype,
                theirs.shape,
            )
        ):
            return f"{name} has another shape"
    unequal = [name for name in one if one[name].tobytes() != other[name].tobytes()]
    if not unequal:
        return None
    most = max(float(np.abs(one[name] - other[name]).max()) for name in unequal)
    return f"{len(unequal)} of {len(one)} arrays differ, by up to {most:.3g}"
