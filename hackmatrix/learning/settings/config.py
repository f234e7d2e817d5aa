"""The configuration of a training run. Imports no JAX, so that `--help` is fast."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hackmatrix.agents.networks.architectures import ARCHITECTURES, NetworkConfig, NetworkOptions
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option
from hackmatrix.environments.curriculum.levels import Curriculum
from hackmatrix.environments.registry import own_code
from hackmatrix.environments.task_list import TaskList

MAX_SEED = 2**31 - 1
DEFAULT_FOLDER = Path("checkpoints")
MAX_GROUPS = 64

ENVIRONMENT, CURRICULUM, TRAINING, TPU, LOGGING = (
    "environment",
    "curriculum",
    "training",
    "tpu",
    "logging",
)


class Course(NamedTuple):
    """The relation of updates to timesteps in a run, which may have been resumed.

    The updates before `first_update` may have had another batch size.
    """

    batch_size: int  # transitions of an update, from `first_update` on
    total_timesteps: int  # of the whole run, rounded up to whole updates
    first_update: int = 0  # number of updates made before
    first_timesteps: int = 0  # transitions of those updates

    @property
    def num_updates(self) -> int:
        """Number of updates of the whole run."""
        left = max(0, self.total_timesteps - self.first_timesteps)
        return self.first_update - (-left // self.batch_size)

    def timesteps(self, update: int) -> int:
        """Transitions since the run's start after `update` updates, at least `first_update`."""
        return self.first_timesteps + (update - self.first_update) * self.batch_size


def num_groups(num_envs: int, num_steps: int, num_minibatches: int) -> int:
    """The largest number of equal groups of games, at most 64, that minibatches can share evenly.

    Args:
        num_envs: games.
        num_steps: steps of each game in a batch.
        num_minibatches: each takes the same number of transitions from every group.
    """
    return next(
        groups
        for groups in range(min(MAX_GROUPS, num_envs), 0, -1)
        if num_envs % groups == 0 and num_steps * (num_envs // groups) % num_minibatches == 0
    )


@dataclass(frozen=True)
class TrainConfig(NetworkOptions):
    """Every setting of a run. It is validated on creation: `UserError` if it is invalid.

    A field's section is its place in a configuration file. Options of one command that are not part
    of the run (resuming, profiling, names) are in `TrainOptions`.
    """

    env: str = option(
        "HackMatrix",
        "environment to train on; module:function for one of your own",
        section=ENVIRONMENT,
    )
    multi_task: bool = option(
        False,
        "train one agent on all environments of --task-list, in place of --env",
        section=ENVIRONMENT,
    )
    task_list: TaskList | None = option(
        None,
        "environments of --multi-task, as \"['CartPole-v1', 'Acrobot-v1']\"",
        section=ENVIRONMENT,
    )
    observation: Literal["classic", "full", "tactical"] = option(
        "full",
        "what the agent observes: as in the original, or all that a player can work out",
        section=ENVIRONMENT,
    )
    max_episode_steps: int | None = option(
        None,
        "actions after which a game is truncated; never unless given",
        at_least=1,
        at_most=2**31 - 1,
        section=ENVIRONMENT,
    )
    reward: Literal["game", "progress"] = option(
        "game",
        "reward to train with: the game's own, or progress through its stages; evaluations always "
        "show the game's",
        section=ENVIRONMENT,
    )
    num_envs: int = option(
        256,
        "games that each agent plays in parallel",
        at_least=1,
        at_most=2**24,
        section=ENVIRONMENT,
    )
    normalize_observations: bool = option(
        False,
        "normalize features to mean 0 and standard deviation 1, as seen so far",
        section=ENVIRONMENT,
    )
    normalize_rewards: bool = option(
        True,
        "divide rewards by the root mean square of the returns seen so far",
        section=ENVIRONMENT,
    )

    curriculum: Curriculum | None = option(
        None,
        "YAML file with levels of starts from which games of the training begin",
        section=CURRICULUM,
    )
    curriculum_start_level: int = option(
        1, "level at which a new run begins", at_least=1, section=CURRICULUM
    )

    seed: int = option(
        0,
        "random seed; the same seed gives the same run",
        at_least=0,
        at_most=MAX_SEED,
        section=TRAINING,
    )
    num_seeds: int = option(
        1,
        "agents trained by one program, with the seeds seed, seed + 1, ...",
        at_least=1,
        at_most=1024,
        section=TRAINING,
    )
    init_from: Path | None = option(
        None,
        "file of params from which all agents of a new run start, such as cloned ones",
        section=TRAINING,
    )
    total_timesteps: int = option(
        10_000_000,
        "actions of an agent in all of its games, rounded up to whole updates",
        at_least=1,
        at_most=2**53,
        section=TRAINING,
    )
    num_steps: int = option(
        128, "actions in each game between updates", at_least=1, at_most=2**20, section=TRAINING
    )
    lr: float = option(
        2.5e-4,
        "learning rate of Adam; scaled for large batches unless given",
        above=0,
        section=TRAINING,
    )
    lr_schedule: Literal["constant", "linear", "cosine"] = option(
        "constant",
        "how the learning rate falls to 0 by the end of the run, if it does",
        section=TRAINING,
    )
    gamma: float = option(0.99, "discount factor", at_least=0, at_most=1, section=TRAINING)
    gae_lambda: float = option(
        0.95, "lambda of generalized advantage estimation", at_least=0, at_most=1, section=TRAINING
    )
    num_minibatches: int = option(
        4,
        "minibatches of a batch; scaled for large batches unless given",
        at_least=1,
        section=TRAINING,
    )
    update_epochs: int = option(
        4,
        "passes over a batch; scaled for large batches unless given",
        at_least=1,
        section=TRAINING,
    )
    gradient_accumulation_steps: int = option(
        1,
        "minibatches whose mean gradient makes one optimizer step",
        at_least=1,
        section=TRAINING,
    )
    clip_eps: float = option(0.2, "clip range of the probability ratio", above=0, section=TRAINING)
    vf_coef: float = option(0.5, "weight of the value loss", at_least=0, section=TRAINING)
    ent_coef: float = option(0.15, "weight of the entropy bonus", at_least=0, section=TRAINING)
    final_ent_coef: float | None = option(
        None,
        "weight of the entropy bonus at the end, reached exponentially; unchanged unless given",
        above=0,
        section=TRAINING,
    )
    max_grad_norm: float = option(
        0.5, "global norm above which a gradient is scaled down", above=0, section=TRAINING
    )
    device: Literal["auto", "cpu", "gpu", "tpu"] = option(
        "auto", "kind of device to train on; auto: the fastest that JAX finds", section=TRAINING
    )
    num_devices: int | None = option(
        None,
        "devices that share the games, of all processes; unless given all of them, on CPU one a "
        "process",
        at_least=1,
        at_most=4096,
        section=TRAINING,
    )
    on_unhealthy: Literal["warn", "stop"] = option(
        "warn",
        "what a critical alarm does: print a warning, or also stop the run",
        section=TRAINING,
    )

    tpu: bool = option(
        False,
        "a TPU is expected; without one there is a warning, and training goes on",
        section=TPU,
    )
    tpu_cores: int | None = option(
        None, "--num-devices where the device is a TPU", at_least=1, at_most=4096, section=TPU
    )
    distributed: bool = option(
        False,
        "train in several processes, one on each host, see docs/scaling.md",
        section=TPU,
    )

    log_interval: int = option(10, "updates between lines of metrics", at_least=1, section=LOGGING)
    save_interval_minutes: float = option(
        10.0, "minutes between checkpoints", above=0, section=LOGGING
    )
    save_interval: int | None = option(
        None, "updates between checkpoints, instead of minutes", at_least=1, section=LOGGING
    )
    save_interval_timesteps: int | None = option(
        None,
        "actions between checkpoints, rounded up to whole updates, instead of minutes",
        at_least=1,
        section=LOGGING,
    )
    keep_checkpoints: int = option(
        5, "number of newest checkpoints to keep, besides the best one", at_least=1, section=LOGGING
    )
    eval_interval: int | None = option(
        None,
        "updates between evaluations; none unless given",
        at_least=1,
        section=LOGGING,
    )
    eval_episodes: int = option(
        256, "games of an evaluation, none of them trained on", at_least=1, section=LOGGING
    )
    tensorboard: bool = option(True, "write event files for TensorBoard", section=LOGGING)
    wandb: bool = option(
        True, "log to Weights & Biases, if it is installed and logged in", section=LOGGING
    )
    project: str = option("hackmatrix", "project at Weights & Biases", section=LOGGING)
    entity: str | None = option(
        None, "team at Weights & Biases; the user's own unless given", section=LOGGING
    )
    artifact: bool = option(True, "upload checkpoints to Weights & Biases", section=LOGGING)
    checkpoint_dir: Path = option(
        DEFAULT_FOLDER, "folder of the runs, or gs://BUCKET/FOLDER", section=LOGGING
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
        self._check_tasks()
        num_levels = 1 if self.curriculum is None else len(self.curriculum.levels)
        if self.curriculum_start_level > num_levels:
            raise UserError(
                f"--curriculum-start-level {self.curriculum_start_level}: "
                + ("needs --curriculum" if self.curriculum is None else f"of {num_levels} levels")
            )
        if self.final_ent_coef is not None and self.ent_coef == 0:
            raise UserError(
                f"--final-ent-coef {self.final_ent_coef} needs --ent-coef above 0, as it is "
                "reached by equal factors"
            )
        if self.batch_size % self.num_minibatches:
            raise UserError(
                f"--num-minibatches {self.num_minibatches} must divide num_envs x num_steps = "
                f"{self.num_envs} x {self.num_steps} = {self.batch_size}"
            )
        if self.num_minibatches % self.gradient_accumulation_steps:
            raise UserError(
                f"--gradient-accumulation-steps {self.gradient_accumulation_steps} must divide "
                f"--num-minibatches {self.num_minibatches}"
            )

    def _check_tasks(self) -> None:
        if self.multi_task != (self.task_list is not None):
            raise UserError(
                "--multi-task needs --task-list, the environments to train on"
                if self.multi_task
                else "--task-list needs --multi-task; --env names a single environment"
            )
        if self.multi_task and self.env != TrainConfig.env:
            raise UserError(f"--env {self.env}: with --multi-task, --task-list names them all")

    @property
    def environment(self) -> str:
        """The name of the environment: that of `env`, or of all tasks together."""
        return self.env if self.task_list is None else self.task_list.environment

    @property
    def code_flags(self) -> tuple[str, ...]:
        """The flags that name the environment, if it is code of the user's own; else none."""
        if not own_code(self.environment):
            return ()
        if self.task_list is None:
            return ("--env", self.env)
        return ("--task-list", f"[{', '.join(self.task_list)}]")

    @property
    def seeds(self) -> range:
        """The seeds of the agents."""
        return range(self.seed, self.seed + self.num_seeds)

    @property
    def batch_size(self) -> int:
        """Number of transitions in one update of an agent."""
        return self.num_envs * self.num_steps

    @property
    def num_groups(self) -> int:
        """Number of groups of games that are shuffled separately; see `num_groups`."""
        recurrent = ARCHITECTURES[self.architecture].recurrent
        return num_groups(self.num_envs, 1 if recurrent else self.num_steps, self.num_minibatches)

    @property
    def network(self) -> NetworkConfig:
        """The settings of the network."""
        return NetworkConfig.of(dataclasses.asdict(self))

    @property
    def num_updates(self) -> int:
        """Number of updates of a run that has this batch size from its start."""
        return Course(self.batch_size, self.total_timesteps).num_updates

    def as_dict(self) -> dict[str, Any]:
        """The settings by field name, as values that JSON and YAML can represent."""
        settings = dataclasses.asdict(self)
        if self.curriculum is not None:
            settings["curriculum"] = self.curriculum.plain()
        if self.task_list is not None:
            settings["task_list"] = list(self.task_list)
        return {name: str(v) if isinstance(v, Path) else v for name, v in settings.items()}

    @property
    def save_updates(self) -> int | None:
        """Updates between checkpoints; None if they are saved by the clock."""
        intervals = []
        if self.save_interval is not None:
            intervals.append(self.save_interval)
        if self.save_interval_timesteps is not None:
            intervals.append(-(-self.save_interval_timesteps // self.batch_size))
        return min(intervals, default=None)
