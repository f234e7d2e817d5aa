"""`hackmatrix train`: trains an agent by PPO."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hackmatrix.cli.arguments import parse_given
from hackmatrix.cli.main import FAILED
from hackmatrix.errors import UserError
from hackmatrix.reporting.console import Console
from hackmatrix.settings.config import Course, TrainConfig
from hackmatrix.settings.options import TrainOptions

if TYPE_CHECKING:
    from hackmatrix.processes.team import Team
    from hackmatrix.training.loop import Outcome
    from hackmatrix.training.sources import Source

SIGNALLED = 128  # plus the signal's number, as in shells

_EXAMPLE = """\
  hackmatrix train --num-envs 2048 --total-timesteps 100_000_000 --run-suffix large
      trains on 100 million actions in 2,048 games, with settings scaled for the large batch
  hackmatrix train --config configs/cpu.yaml --seed 1
      takes settings from a file; flags override it
  hackmatrix train --resume checkpoints/my-run
      goes on from where the run was stopped or killed

Exits with 0 when the run is finished, 129, 130 or 143 when SIGHUP, Ctrl+C or SIGTERM stopped it (a
checkpoint is saved), 1 when a critical alarm, a NaN or infinity or the disk ended it, 2 when an
option is wrong, 75 when another process of --distributed was lost: start all of them again."""


def main(argv: list[str]) -> int:
    """Runs the command."""
    flags, options = parsed(argv)
    if is_distributed(flags, options) and not options.print_config:
        from hackmatrix.cli.distributed import train_watched

        return train_watched(argv, options)
    return run(flags, options)


def parsed(argv: list[str]) -> tuple[dict[str, Any], TrainOptions]:
    """The settings given on a command line, and the options of the command."""
    flags, given = parse_given(
        [TrainConfig, TrainOptions],
        argv,
        command="hackmatrix train",
        purpose="Trains an agent by PPO, with checkpoints from which training can go on exactly.",
        example=_EXAMPLE,
    )
    return flags, TrainOptions(**given)


def is_distributed(flags: dict[str, Any], options: TrainOptions) -> bool:
    """Whether several processes are to train together.

    Raises:
        UserError: the options of several processes are given for one.
    """
    if "distributed" in flags:
        distributed = bool(flags["distributed"])
    else:
        distributed = bool(_in_file(options).get("distributed"))
    if options.coordinator is not None and not distributed:
        raise UserError("--coordinator needs --distributed")
    if distributed and options.auto_tune:
        raise UserError(
            "--auto-tune looks for devices before the processes meet: give its settings, see "
            "docs/training.md"
        )
    return distributed


def run(flags: dict[str, Any], options: TrainOptions, team: "Team | None" = None) -> int:
    """Trains with these settings and options, as the first process of a team if there is one."""
    config, source, notes = _settle(flags, options)
    if options.print_config:
        from hackmatrix.settings.config_file import dump_config

        print(dump_config(config), end="")
        return 0
    course = _course(config, source)
    with Console() as console:
        for note in [*notes, _plan(config, course)]:
            console.say(note)
        if not flags and options.config is None and source is None:
            console.say("settings of the original; configs/best.yaml makes an agent that wins")
        outcome = _train(config, options, source, console, team)
    for line in _summary(outcome, course):
        console.say(line)
    return _exit_code(outcome)


def _settle(
    flags: dict[str, Any], options: TrainOptions
) -> tuple[TrainConfig, "Source | Path | None", list[str]]:
    """The configuration, what the run resumes or starts from, and notes on automatic choices."""
    from hackmatrix.settings.resolve import resolve
    from hackmatrix.training.sources import Source, find_source

    in_file = _in_file(options)
    given = {**in_file, **flags}
    folder = given.get("checkpoint_dir", TrainConfig.checkpoint_dir)
    source = find_source(options, folder, _fetcher(given) if given.get("wandb", True) else None)
    resumed = None
    if isinstance(source, Source):
        resumed = source.settings
        if source.run is not None and "checkpoint_dir" not in given:
            flags = flags | {"checkpoint_dir": source.run.parent}  # also if it has been moved
    if options.auto_tune and not options.print_config:
        print("looking for devices ...", flush=True)
    config, notes = resolve(flags, in_file, resumed, auto_tune=options.auto_tune)
    return config, source, notes


def _in_file(options: TrainOptions) -> dict[str, Any]:
    from hackmatrix.settings.config_file import read_config

    return {} if options.config is None else dict(read_config(options.config))


def _course(config: TrainConfig, source: "Source | Path | None") -> Course:
    if source is None or isinstance(source, Path):
        return Course(config.batch_size, config.total_timesteps)
    return source.course(config)


def _plan(config: TrainConfig, course: Course) -> str:
    total = course.timesteps(course.num_updates)
    rounded = " (rounded up to whole updates)" if total > config.total_timesteps else ""
    agents = f" of {config.num_seeds} agents" if config.num_seeds > 1 else ""
    return f"{course.num_updates:,} updates{agents}, {total:,} steps{rounded}; loading JAX ..."


def _train(
    config: TrainConfig,
    options: TrainOptions,
    source: "Source | Path | None",
    console: Console,
    team: "Team | None",
) -> "Outcome":
    import jax

    from hackmatrix.evaluation.selection import make_evaluate
    from hackmatrix.storage.compilation_cache import enable_compilation_cache
    from hackmatrix.training.loop import train

    enable_compilation_cache()
    try:
        return train(
            config, options, console, source=source, make_evaluate=make_evaluate, team=team
        )
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise UserError(
            "out of memory on the device: give a smaller --num-envs or --num-steps, or a larger "
            "--num-minibatches with --gradient-accumulation-steps"
        ) from error


def _fetcher(given: dict[str, Any]) -> Callable[[str, Path], Path]:
    """A function that downloads a run from Weights & Biases."""

    def fetch(run_id: str, folder: Path) -> Path:
        from hackmatrix.runs.trackers import download_run

        project, entity = given.get("project", TrainConfig.project), given.get("entity")
        print(f"looking for {run_id} at Weights & Biases ...", flush=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return download_run(run_id, folder, project=project, entity=entity)

    return fetch


def _summary(outcome: "Outcome", course: Course) -> list[str]:
    """Lines that say how the run ended, where its files are, and what to run next."""
    how = {
        "finished": "done",
        "signal": "stopped",
        "unhealthy": "stopped as unhealthy",
        "anomaly": "stopped at a number that is not finite",
    }[outcome.end.value]
    lines = [f"{how} after {outcome.updates:,} updates, {outcome.timesteps:,} steps"]
    places = (
        ("run", outcome.run),
        ("checkpoint", outcome.checkpoint),
        ("best", outcome.best),
        ("params", outcome.params and _place_of(outcome.params)),
    )
    lines += [f"{name:<12}{path}" for name, path in places if path is not None]
    following = []
    if outcome.params is not None:
        following.append(f"hackmatrix evaluate {shlex.quote(str(outcome.params))}")
    goes_on = outcome.end.value in ("signal", "anomaly") and outcome.updates < course.num_updates
    if goes_on and outcome.checkpoint is not None and not outcome.collapsed:
        following.append(f"hackmatrix train --resume {shlex.quote(str(outcome.run))}")
    for label, command in zip(("next", ""), following, strict=False):
        lines.append(f"{label:<12}{command}")
    return lines


def _place_of(params: Path) -> Path:
    """The file of params of one agent; for many agents a glob pattern of their folders."""
    return params / "seed_*" if params.is_dir() else params


def _exit_code(outcome: "Outcome") -> int:
    if outcome.signal is not None and outcome.end.value == "signal":
        return SIGNALLED + outcome.signal
    return 0 if outcome.end.value == "finished" and outcome.saved else FAILED
