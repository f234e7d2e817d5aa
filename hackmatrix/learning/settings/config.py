"""The configuration of a training run. Imports no JAX, so that `--help` is fast."""

import difflib
import typing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from hackmatrix.agents.networks.architectures import PPO, NetworkConfig, find_algorithm
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import PRESENCE, Option, check, flag, option, options_of
from hackmatrix.environments.config import EnvironmentConfig
from hackmatrix.environments.registry import own_code
from hackmatrix.learning.algorithms.config import (
    PPOConfig,
    config_class,
    convert_own_settings,
    learning_options,
)
from hackmatrix.learning.trainer.config import AlgorithmConfig
from hackmatrix.runs.names import check_word


@dataclass(frozen=True)
class ReportConfig:
    """Reports of a run: their contents, times and receivers. No compiled program reads it."""

    SECTION: ClassVar = "logging"

    on_unhealthy: Literal["warn", "stop"] = option(
        "warn",
        "what a critical alarm does: print a warning, or also stop the run",
        compiled=False,
        section="training",
        common=True,
    )
    log_interval: int = option(10, "updates between lines of metrics", at_least=1, compiled=False)
    eval_interval: int | None = option(
        None, "updates between evaluations; default none", at_least=1, compiled=False, common=True
    )
    eval_episodes: int = option(
        256, "games of an evaluation, none of them trained on", at_least=1, compiled=False
    )
    tensorboard: bool = option(
        True, "write event files for TensorBoard", compiled=False, common=True
    )
    wandb: bool = option(
        True, "log to Weights & Biases, if installed and logged in", compiled=False, common=True
    )
    project: str = option("hackmatrix", "project at Weights & Biases", compiled=False)
    entity: str | None = option(None, "team at Weights & Biases; default your own", compiled=False)
    artifact: bool = option(True, "upload checkpoints to Weights & Biases", compiled=False)

    def __post_init__(self) -> None:
        check(self)


MAX_SEED = 2**31 - 1
DEFAULT_FOLDER = Path("checkpoints")

LOGGING = "logging"

_SECTIONS = ("model", "environment", "curriculum", "training", "tpu", LOGGING)


@dataclass(frozen=True)
class RunConfig:
    """The agents of a run, the devices that it has, and its checkpoints."""

    SECTION: ClassVar = "training"

    seed: int = option(
        0,
        "random seed; the same seed gives the same run",
        at_least=0,
        at_most=MAX_SEED,
        compiled=False,
        common=True,
    )
    num_seeds: int = option(
        1,
        "agents to train in one program, with seeds --seed, --seed + 1, ...",
        at_least=1,
        at_most=1024,
        common=True,
    )
    init_from: Path | None = option(
        None,
        "params from which all agents of a new run start: a file, such as `hackmatrix clone` "
        "writes, or an agent of the package, such as raw",
        compiled=False,
    )
    device: Literal["auto", "cpu", "gpu", "tpu"] = option(
        "auto",
        "kind of device to train on; auto: the fastest that JAX finds",
        compiled=False,
        common=True,
    )
    num_devices: int | None = option(
        None,
        "devices that share the games, over all processes; default all, on CPU one per process",
        at_least=1,
        at_most=4096,
        compiled=False,
        common=True,
    )
    kernels: Literal["auto", "xla"] = option(
        "auto",
        "what compiles the games: auto, what plays fastest on the device; xla, XLA on any device",
        compiled=False,
        common=True,
    )
    tpu: bool = option(
        False,
        "expect a TPU; without one, warn and train on another device",
        compiled=False,
        section="tpu",
        key="enabled",
    )
    tpu_cores: int | None = option(
        None,
        "as --num-devices, for TPUs alone",
        at_least=1,
        at_most=4096,
        compiled=False,
        section="tpu",
        key="num_cores",
    )
    distributed: bool = option(
        False,
        "train in several processes, one on each host, see docs/scaling.md",
        compiled=False,
        section="tpu",
    )
    save_interval_minutes: float = option(
        10.0, "minutes between checkpoints", above=0, compiled=False, section=LOGGING, common=True
    )
    save_interval: int | None = option(
        None,
        "updates between checkpoints, instead of minutes",
        at_least=1,
        compiled=False,
        section=LOGGING,
    )
    save_interval_timesteps: int | None = option(
        None,
        "actions between checkpoints, rounded up to whole updates, instead of minutes",
        at_least=1,
        compiled=False,
        section=LOGGING,
    )
    keep_checkpoints: int = option(
        5,
        "number of newest checkpoints to keep, besides the best one",
        at_least=1,
        compiled=False,
        section=LOGGING,
    )
    checkpoint_dir: Path = option(
        DEFAULT_FOLDER,
        "folder of the runs, or gs://BUCKET/FOLDER",
        compiled=False,
        section=LOGGING,
        common=True,
    )

    def __post_init__(self) -> None:
        check(self)
        if str(self.checkpoint_dir).startswith("gs:"):
            raise UserError(
                f"checkpoint_dir must be a folder here, got {self.checkpoint_dir}: `hackmatrix "
                "train` alone mirrors runs to buckets"
            )
        if self.seed + self.num_seeds - 1 > MAX_SEED:
            raise UserError(
                f"--seed {self.seed} with --num-seeds {self.num_seeds} goes beyond the largest "
                f"seed, {MAX_SEED}"
            )

    @property
    def engine(self) -> str:
        """The engine that plays the games of training, a name that `hackmatrix.make` takes."""
        return "jax" if self.kernels == "xla" else "auto"

    @property
    def seeds(self) -> range:
        """The seeds of the agents."""
        return range(self.seed, self.seed + self.num_seeds)


@dataclass(frozen=True)
class TrainConfig:
    """Every setting of a run. Each part is validated on its creation: `UserError` if it is invalid.

    For users a setting has its name alone, whichever part it is in: see `of` and `flat`. Options of
    one command that are not part of the run (resuming, profiling, names) are in `TrainOptions`.
    """

    network: NetworkConfig = field(default_factory=NetworkConfig)
    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    learning: AlgorithmConfig = field(default_factory=PPOConfig)
    run: RunConfig = field(default_factory=RunConfig)
    report: ReportConfig = field(default_factory=ReportConfig)

    def __post_init__(self) -> None:
        if self.network.symmetric and self.learning.normalize_observations:
            raise UserError(
                "--symmetric: --normalize-observations tells mirrored games apart; leave it off"
            )
        is_outcome = own_code(self.environment.name) or self.environment.reward == "win"
        if self.network.value == "chance" and (self.learning.normalize_rewards or not is_outcome):
            raise UserError(
                "--value chance needs --reward win and --no-normalize-rewards: returns of 0 to 1"
            )
        if self.network.value == "chance" and find_algorithm(self.learning.algorithm).greedy:
            raise UserError(
                f"--value chance: the values of {self.learning.algorithm} are no chances"
            )
        clips = isinstance(self.learning, PPOConfig) and self.learning.clip_value_loss is not None
        if self.network.value == "chance" and clips:
            raise UserError("--clip-value-loss goes with --value return")

    @classmethod
    def of(cls, **settings: Any) -> Self:
        """The configuration with these settings, and the defaults of all others.

        Settings of other algorithms than `algorithm` are left out.

        Raises:
            TypeError: there is no such setting.
            UserError: a setting is not valid.
        """
        if unknown := settings.keys() - OPTIONS.keys():
            first = min(unknown)
            near = difflib.get_close_matches(first, OPTIONS, n=1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise TypeError(f"there is no setting {first}{hint}")
        learning = config_class(settings.get("algorithm", PPO))
        own = convert_own_settings(learning, settings.get("algorithm_settings") or {})
        parts = {}
        for part, kind in (_PARTS | {"learning": learning}).items():
            names = [each.name for each in fields(kind)]
            part_settings = {name: settings[name] for name in names if name in settings}
            parts[part] = kind(**part_settings, **(own if kind is learning else {}))
        return cls(**parts)

    def flat(self) -> dict[str, Any]:
        """The settings by name, as `of` takes them."""
        values = {name: x for part in vars(self).values() for name, x in vars(part).items()}
        return {name: values[name] for name in OPTIONS if name in values}

    def but(self, **changes: Any) -> Self:
        """The configuration with some settings changed."""
        return self.of(**self.flat() | changes)

    def as_dict(self) -> dict[str, Any]:
        """The settings by name, as values that JSON and YAML can represent."""
        settings = self.flat()
        if self.environment.curriculum is not None:
            settings["curriculum"] = self.environment.curriculum.plain()
        if self.environment.task_list is not None:
            settings["task_list"] = list(self.environment.task_list)
        if self.learning.algorithm_settings is not None:
            settings["algorithm_settings"] = dict(self.learning.algorithm_settings)
        if self.learning.is_own and find_algorithm(self.learning.algorithm).greedy:
            settings["greedy"] = True  # so that its agents are evaluated without its code
        return {name: str(v) if isinstance(v, Path) else v for name, v in settings.items()}

    @property
    def code_flags(self) -> tuple[str, ...]:
        """The flags that name the code of the user's own with which the run trains."""
        parts = self.environment, self.network, self.learning
        return tuple(flag for part in parts for flag in part.code_flags)

    @property
    def compiled_settings(self) -> dict[str, Any]:
        """The settings that compiled programs read, in an order that says nothing of sections."""
        settings = self.flat()
        return {
            name: settings[name] is not None
            if OPTIONS[name].compiled == PRESENCE
            else settings[name]
            for name in sorted(settings)
            if OPTIONS[name].compiled
        }

    @property
    def num_groups(self) -> int:
        """Number of groups of games that are shuffled separately; see `AlgorithmConfig`."""
        return self.learning.num_groups(recurrent=self.network.recurrent)

    @property
    def save_updates(self) -> int | None:
        """Updates between checkpoints; None if they are saved by the clock."""
        intervals = []
        if self.run.save_interval is not None:
            intervals.append(self.run.save_interval)
        if self.run.save_interval_timesteps is not None:
            intervals.append(-(-self.run.save_interval_timesteps // self.learning.batch_size))
        return min(intervals, default=None)


_PARTS = typing.get_type_hints(TrainConfig)
_ALL_OPTIONS = {name: each for kind in _PARTS.values() for name, each in options_of(kind).items()}
_ALL_OPTIONS |= learning_options()
OPTIONS: dict[str, Option] = {
    name: each
    for section in _SECTIONS
    for name, each in _ALL_OPTIONS.items()
    if each.section == section
}


# --- Options of one `hackmatrix train` command that are not part of the run's configuration -------


_PROCESS_NUMBERS = ("num_processes", "process_id")


@dataclass(frozen=True)
class TrainOptions:
    """Where settings come from, the run's folder, what to resume, and diagnostics."""

    config: Path | None = option(
        None,
        "settings: a YAML file or a name from --list-configs; flags override them; default of a "
        "new run of HackMatrix: best",
        common=True,
    )
    list_configs: bool = option(
        False, "list the names that --config accepts, and exit", common=True
    )
    print_config: bool = option(False, "print the resolved settings as YAML and exit", common=True)
    auto_tune: bool = option(
        False,
        "choose the batch and the precision for this device, unless given, see docs/training.md",
    )
    output_dir: Path | None = option(
        None, "folder of the run, instead of a name; or gs://...", common=True
    )
    run_name: str | None = option(
        None,
        "name of the run and its folder; default hackmatrix-jax-{mon}{dd}-{yy}-{n}",
        common=True,
    )
    run_suffix: str | None = option(None, "text added to the name of the run")
    resume: str | None = option(
        None,
        "run or checkpoint to resume, or exported params to start from: a path or gs://...",
        aliases=("resume_from",),
        common=True,
    )
    resume_run: str | None = option(None, "run to resume, by its name in --checkpoint-dir")
    resume_if_there: bool = option(
        False,
        "resume the run that --run-name or --output-dir names if it exists, else begin it: the "
        "same line starts and restarts a job",
    )
    rewind: bool = option(False, "with --resume of an older checkpoint: delete everything after it")
    reset_optimizer: bool = option(False, "with --resume: start with a fresh optimizer state")
    profile: bool = option(False, "write a trace of one update for TensorBoard's profiler")
    profile_step: int = option(3, "the update that --profile traces", at_least=1)
    detect_anomaly: bool = option(
        False, "stop at the first NaN or infinity, and name its update, minibatch and tensor"
    )
    debug: bool = option(False, "print the devices, and time and memory of every call")
    coordinator: str | None = option(
        None,
        "with --distributed: address of process 0, as HOST:PORT; TPUs and Slurm need none",
    )
    num_processes: int | None = option(
        None, "with --coordinator: number of the processes", at_least=1, at_most=4096
    )
    process_id: int | None = option(
        None, "with --coordinator: number of this process, from 0", at_least=0
    )
    heartbeat_timeout: int = option(
        100,
        "with --distributed: seconds of silence after which a process counts as lost",
        at_least=5,
        at_most=86_400,
    )
    stall_timeout: float = option(
        1800.0,
        "with --distributed: seconds without an update after which a process is killed as stuck",
        at_least=1,
    )

    def __post_init__(self) -> None:
        check(self)
        for name in ("run_name", "run_suffix", "resume_run"):
            if (text := getattr(self, name)) is not None:
                check_word(flag(name), text)
        if self.output_dir is not None:
            if str(self.output_dir).startswith("gs:"):
                raise UserError("output_dir must be a folder here, see docs/buckets.md")
            if self.run_name or self.run_suffix:
                raise UserError("--output-dir is the run's folder: give no --run-name with it")
        if self.resume == "":
            raise UserError("--resume must name a run's folder, a checkpoint or exported params")
        if self.resume and self.resume_run:
            raise UserError("give --resume or --resume-run, not both")
        if self.resume_if_there:
            if self.resume or self.resume_run:
                raise UserError("--resume-if-there names no run: give it without --resume")
            if not (self.run_name or self.output_dir):
                raise UserError("--resume-if-there needs --run-name or --output-dir")
        self._check_processes()
        if not (self.resume or self.resume_run):
            for name in ("rewind", "reset_optimizer"):
                if getattr(self, name):
                    raise UserError(f"{flag(name)} needs --resume")

    def _check_processes(self) -> None:
        place = {name: getattr(self, name) for name in ("coordinator", *_PROCESS_NUMBERS)}
        if any(value is not None for value in place.values()):
            for name in (name for name, value in place.items() if value is None):
                raise UserError(
                    f"{flag(name)} is missing: --coordinator, --num-processes and --process-id are "
                    "given together, or none of them"
                )
        host, colon, port = (self.coordinator or "localhost:1").rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) < 2**16):
            raise UserError(f"--coordinator must be HOST:PORT, got {self.coordinator}")
        if self.process_id is not None and self.process_id >= (self.num_processes or 0):
            raise UserError(
                f"--process-id {self.process_id} must be below --num-processes "
                f"{self.num_processes}: they count from 0"
            )
