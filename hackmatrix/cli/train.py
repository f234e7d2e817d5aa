"""`hackmatrix train`: trains an agent."""

import contextlib
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hackmatrix.cli.arguments import as_typed, parse_explicit
from hackmatrix.cli.main import FAILED, SIGNALLED
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.core.options import Option, flag, options_of
from hackmatrix.core.processes import RESTART_ME, command_name, supervise
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.core.yaml_file import CONFIGS, config_file, describe_configs
from hackmatrix.environments.registry import check_code, environment_id
from hackmatrix.environments.task_list import TaskList
from hackmatrix.game import native
from hackmatrix.learning.run.location import OpenRun, RunLocation, Values
from hackmatrix.learning.settings.config import (
    OPTIONS,
    ReportConfig,
    RunConfig,
    TrainConfig,
    TrainOptions,
)
from hackmatrix.learning.trainer.config import Course
from hackmatrix.runs.bucket import Unreachable

if TYPE_CHECKING:
    from hackmatrix.core.devices.team import Team
    from hackmatrix.learning.reporting.console import Console
    from hackmatrix.learning.run.loop import RunOutcome
    from hackmatrix.learning.run.start import Start

_EXAMPLE = """\
  hackmatrix train
      trains an agent that wins, in half an hour on a core
  hackmatrix train --config quick --seed 1
      trains with other settings: a name from --list-configs, or a file; flags override them
  hackmatrix train --config quick --init-from cloned.npz
      starts a new run from exported params
  hackmatrix train --resume checkpoints/my-run
      resumes a run that was stopped or killed

Exit codes: 0, the run is finished; 129, 130, 143, stopped by SIGHUP, Ctrl+C or SIGTERM with a
checkpoint saved; 1, ended by a critical alarm, a NaN or infinity, or the disk; 2, wrong usage; 75,
a bucket did not answer or another process of --distributed was lost: start all processes again,
with --resume."""


_BESIDE = (  # from 1,000 games of each, docs/learning.md
    "stage: where games end, of 8 (random play 1.2, the scripted player 7.0, the shipped agent 7.5)"
)


class TrainCommand(NamedTuple):
    """A parsed command line."""

    flags: Values  # settings of `TrainConfig`
    in_file: Values  # likewise, of the file of --config
    option_values: Values  # fields of `TrainOptions`
    location: RunLocation
    notes: list[str]  # on variables of the environment that stand for flags

    @property
    def options(self) -> TrainOptions:
        """The options of the command, as far as they don't depend on what is in a bucket."""
        return TrainOptions(**self.option_values)

    def open(self, *, trains: bool = True) -> contextlib.AbstractContextManager[OpenRun]:
        """Context in which the run is here, with the start of it; see `RunLocation.open`."""
        settings = {**self.in_file, **self.flags}
        runs: Path = settings.get("checkpoint_dir", RunConfig.checkpoint_dir)
        fetch = _fetcher(settings) if settings.get("wandb", True) else None
        return self.location.open(self.option_values, runs, fetch, trains=trains)


def main(argv: list[str]) -> int:
    """Runs the command."""
    with as_typed(_tables(), argv):
        return _main(argv)


def _main(argv: list[str]) -> int:
    command = parse(argv)
    options = command.options
    if options.list_configs:
        print(f"{describe_configs()}\n\nfiles in {CONFIGS}")
        return 0
    if is_distributed(command) and not options.print_config:
        return supervise("hackmatrix.cli.distributed", argv, options.stall_timeout)
    return run(command)


def parse(argv: list[str]) -> TrainCommand:
    """The command line parsed, with folders here in place of those in buckets.

    Raises:
        UserError: an option is wrong; no bucket has been asked.
    """
    flags, option_values = parse_explicit(
        _tables(),
        argv,
        command="hackmatrix train",
        purpose="Trains an agent by PPO or PQN, with checkpoints from which it resumes exactly. "
        "The defaults below apply to settings that --config leaves out.",
        example=_EXAMPLE,
        has_help_all=True,
    )
    in_file = _in_file(option_values)
    notes = add_variables(os.environ, flags, option_values, in_file)
    location = RunLocation.of({**in_file, **flags}, option_values)
    flags, option_values = location.localise(flags, option_values)
    return TrainCommand(flags, in_file, option_values, location, notes)


def _tables() -> list[dict[str, Option]]:
    return [OPTIONS, options_of(TrainOptions)]


def is_distributed(command: TrainCommand) -> bool:
    """Whether several processes are to train together.

    Raises:
        UserError: the options of several processes are given for one.
    """
    distributed = bool({**command.in_file, **command.flags}.get("distributed"))
    if command.options.coordinator is not None and not distributed:
        raise UserError("--coordinator needs --distributed")
    if distributed and command.options.auto_tune:
        raise UserError(
            "--auto-tune looks for devices before the processes meet: give its settings, see "
            "docs/training.md"
        )
    return distributed


def run(command: TrainCommand, team: "Team | None" = None) -> int:
    """Trains, as the first process of a team if there is one; returns the exit code."""
    try:
        if command.options.print_config:
            return _print_config(command)
        return _run(command, team)
    except Unreachable as error:
        print(f"hackmatrix train: error: {error}", file=sys.stderr)
        return RESTART_ME


def _print_config(command: TrainCommand) -> int:
    from hackmatrix.learning.settings.config_file import dump_config

    with command.open(trains=False) as run:
        config, _ = _settle(command.flags, command.in_file, run.options, run.start)
    print(dump_config(config), end="")
    return 0


def _run(command: TrainCommand, team: "Team | None") -> int:
    """Trains, and mirrors the run if it goes to a bucket."""
    need("jax", "flax")
    from hackmatrix.learning.reporting.console import Console

    with command.open() as run:
        config, notes = prepare(command, run.options, run.start)
        course = run.start.course(config.learning)
        with Console() as console:
            for note in notes:
                console.say(note)
            with run.mirror(console) as mirror:
                outcome = _train(config, run.options, run.start, console, team)
        for line in summary(outcome, course, config):
            console.say(line)
    code = code_of(outcome)
    if mirror is None or mirror.is_complete:
        return code
    return code or (FAILED if mirror.is_over else RESTART_ME)


def prepare(
    command: TrainCommand, options: TrainOptions, start: "Start"
) -> tuple[TrainConfig, list[str]]:
    """The configuration, and what to say of it.

    Raises:
        UserError: a setting is not valid, or names code that no flag does.
    """
    from hackmatrix.learning.run.start import check_run_folder

    config, notes = _settle(command.flags, command.in_file, options, start)
    _check_code(config, command, options)
    check_run_folder(config, options, start)
    if _is_hackmatrix(config):
        notes += [note for note in (native.missing_note(),) if note is not None]
    beside = [_BESIDE] if start.is_beginning and _is_hackmatrix(config) else []
    plan = _plan(config, start.course(config.learning))
    return config, [*command.notes, *notes, plan, *beside]


def _in_file(option_values: Values) -> Values:
    from hackmatrix.learning.settings.config_file import read_config

    return {} if option_values.get("config") is None else read_config(option_values["config"])


def _settle(
    flags: Values, in_file: Values, options: TrainOptions, start: "Start"
) -> tuple[TrainConfig, list[str]]:
    """The configuration, and notes on automatic choices."""
    from hackmatrix.learning.settings.config_file import DEFAULT, default_settings
    from hackmatrix.learning.settings.resolve import resolve

    if not start.is_beginning and "init_from" in flags:
        raise UserError("--init-from starts a new run: give it without --resume")
    if start.run is not None and "checkpoint_dir" not in {**in_file, **flags}:
        flags = flags | {"checkpoint_dir": start.run.parent}  # also if it has been moved
    if options.auto_tune and not options.print_config:
        print("looking for devices ...", flush=True)
    by_default = []
    is_new = start.settings is None  # from the beginning, or from the params of a file
    if is_new and options.config is None and not options.auto_tune:
        in_file = default_settings(flags)
        if in_file:
            by_default = [f"settings of --config {DEFAULT}; --list-configs names others"]
    try:
        config, notes = resolve(
            flags, in_file, start.settings, auto_tune=options.auto_tune, params=start.params
        )
    except UserError as error:
        raise UserError(f"{error}{_from_file(str(error), flags, options)}") from None
    return config, by_default + notes


def _from_file(error: str, flags: Values, options: TrainOptions) -> str:
    """Where the flags that an error names stand, if they were not typed but are in the file."""
    if options.config is None:
        return ""
    from hackmatrix.learning.settings.config_file import entries, names_of

    keys = {
        flag(name): key
        for key, value in entries(config_file(options.config))
        for name in names_of(key)
    }
    typed = {flag(name) for name in flags}
    named = [f for f in dict.fromkeys(re.findall(r"--[a-z-]+", error)) if f in keys.keys() - typed]
    return "".join(f"; {f} is {keys[f]} in {options.config}" for f in named)


def _check_code(config: TrainConfig, command: TrainCommand, options: TrainOptions) -> None:
    """Raises `UserError` if the environment or the network is code that only a file names."""
    in_file = command.in_file.keys() & {"env", "task_list"}
    file = options.config if in_file else options.resume or options.resume_run
    tasks: TaskList | None = command.flags.get("task_list")
    named_by_user = command.flags.get("env") if tasks is None else tasks.environment
    flags = shlex.join(config.environment.code_flags)
    check_code(config.environment.name, named_by_user, f"{file}: trains on", flags)
    if "architecture" not in command.flags:
        file = options.config if "architecture" in command.in_file else file
        config.network.check_code(f"{file}: its network is")


def _is_hackmatrix(config: TrainConfig) -> bool:
    return environment_id(config.environment.name) == ENVIRONMENT_ID


def _plan(config: TrainConfig, course: Course) -> str:
    total = course.timesteps(course.num_updates)
    rounded = " (rounded up to whole updates)" if total > config.learning.total_timesteps else ""
    agents = f" of {config.run.num_seeds} agents" if config.run.num_seeds > 1 else ""
    return f"{course.num_updates:,} updates{agents}, {total:,} steps{rounded}; loading JAX ..."


def _train(
    config: TrainConfig,
    options: TrainOptions,
    start: "Start",
    console: "Console",
    team: "Team | None",
) -> "RunOutcome":
    import jax

    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.learning.run.loop import train
    from hackmatrix.research.evaluation.jax_agents import make_evaluate

    enable_compilation_cache()
    try:
        return train(config, options, console, start=start, make_evaluate=make_evaluate, team=team)
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise UserError(
            "out of memory on the device: give a smaller --num-envs or --num-steps, or a larger "
            "--num-minibatches with --gradient-accumulation-steps"
        ) from error


def _fetcher(settings: dict[str, Any]) -> Callable[[str, Path], Path]:
    """A function that downloads a run from Weights & Biases."""

    def fetch(run_id: str, folder: Path) -> Path:
        from hackmatrix.runs.trackers import download_run

        project, entity = settings.get("project", ReportConfig.project), settings.get("entity")
        print(f"looking for {run_id} at Weights & Biases ...", flush=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return download_run(run_id, folder, project=project, entity=entity)

    return fetch


def summary(outcome: "RunOutcome", course: Course, config: TrainConfig) -> list[str]:
    """Lines that say how the run ended, where its files are, and what to run next."""
    how = {
        "finished": "done",
        "signal": "stopped",
        "unhealthy": "stopped as unhealthy",
        "anomaly": "stopped at a number that is not finite",
    }[outcome.end.value]
    lines = [f"{how} after {outcome.updates:,} updates, {outcome.timesteps:,} steps"]
    paths = (
        ("run", outcome.run),
        ("checkpoint", outcome.checkpoint),
        ("best", outcome.best),
        ("params", outcome.params and _params_path(outcome.params)),
    )
    lines += [f"{name:<12}{path}" for name, path in paths if path is not None]
    following = []
    if outcome.params is not None:
        env = ["--env", config.environment.name] if config.environment.code_flags else []
        code = [*env, *config.network.code_flags]
        following.append(shlex.join(["evaluate", str(outcome.params), *code]))
    goes_on = outcome.end.value in ("signal", "anomaly") and outcome.updates < course.num_updates
    if goes_on and outcome.checkpoint is not None and not outcome.collapsed:
        words = ["--resume", str(outcome.run), *config.code_flags]
        following.append(shlex.join(["train", *words]))
    for label, command in zip(("next", ""), following, strict=False):
        lines.append(f"{label:<12}{command_name()} {command}")
    return lines


def _params_path(params: Path) -> Path:
    """The file of params of one agent; for many agents a glob pattern of their folders."""
    return params / "seed_*" if params.is_dir() else params


def code_of(outcome: "RunOutcome") -> int:
    """The exit code of a run."""
    if outcome.signal is not None and outcome.end.value == "signal":
        return SIGNALLED + outcome.signal
    return 0 if outcome.end.value == "finished" and outcome.saved else FAILED


# --- Variables of other trainers' documents that stand for flags of `hackmatrix train` ------------


_OF_PROCESSES = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "RANK",
)  # as torch.distributed has them


def add_variables(
    variables: Mapping[str, str],
    flags: dict[str, Any],
    options: dict[str, Any],
    in_file: Mapping[str, Any],
) -> list[str]:
    """Adds the flags that variables stand for, unless they are given; returns a line for each.

    Args:
        variables: those of the process.
        flags: settings that the command line gives.
        options: fields of `TrainOptions` that it gives.
        in_file: settings of the file of `--config`.

    Raises:
        UserError: variables of several processes are incomplete, or no numbers.
    """
    notes = []
    if variables.get("XLA_USE_BF16") == "1" and "dtype" not in flags:
        flags["dtype"] = "bfloat16"
        notes.append("XLA_USE_BF16=1 is taken as --dtype bfloat16")
    distributed = {**in_file, **flags}.get("distributed")
    typed = {"coordinator", "num_processes", "process_id"} & options.keys()
    if distributed and "MASTER_ADDR" in variables and not typed:
        missing = [name for name in _OF_PROCESSES if name not in variables]
        if missing:
            raise UserError(f"MASTER_ADDR is set, and {', '.join(missing)} not: set all, or none")
        address, port, *numbers = (variables[name] for name in _OF_PROCESSES)
        if not all(number.isdecimal() for number in numbers):
            raise UserError(f"WORLD_SIZE and RANK must be numbers, got {' and '.join(numbers)}")
        size, rank = map(int, numbers)
        options |= {"coordinator": f"{address}:{port}", "num_processes": size, "process_id": rank}
        notes.append(
            f"MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK: process {rank} of {size}, coordinator "
            f"{address}:{port}; one process a host, whatever the number of its chips"
        )
    return notes
