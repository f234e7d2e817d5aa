"""The settings of a run that say what is played. Imports no JAX, so that `--help` is fast."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.curriculum.levels import Curriculum
from hackmatrix.environments.registry import environment_id, make_environment, own_code
from hackmatrix.environments.task_list import TaskList
from hackmatrix.game.rules.training_reward import PROGRAM_WORTH, WIN_WORTH

if TYPE_CHECKING:
    from hackmatrix.environments.interface.environment import Environment


@dataclass(frozen=True)
class EnvironmentConfig:
    """The environment of a run, and where the games of its training begin."""

    SECTION: ClassVar = "environment"

    env: str = option(
        "HackMatrix",
        "environment to train on; module:function for one of your own",
        key="name",
        common=True,
    )
    multi_task: bool = option(
        False, "train one agent on all environments of --task-list, instead of --env"
    )
    task_list: TaskList | None = option(
        None, "environments of --multi-task, as \"['CartPole-v1', 'Acrobot-v1']\""
    )
    observation: Literal["classic", "full", "tactical"] = option(
        "full",
        "features that the network reads: the original's, all visible ones, or derived ones",
        common=True,
    )
    max_episode_steps: int | None = option(
        None,
        "actions after which a game is truncated; default never",
        at_least=1,
        at_most=2**31 - 1,
    )
    reward: Literal["game", "progress", "stages", "programs", "win", "score"] = option(
        "game",
        "reward to train with, the objective: the game's own; progress through its stages; that "
        "without pay for what is left over, or with pay for programs owned; the chance of winning, "
        "or that times win_worth + score. Evaluations always show the game's",
        aliases=("objective",),
        common=True,
    )
    win_worth: float = option(
        WIN_WORTH, "points of score that a win alone is worth to the reward score", above=0
    )
    program_worth: float = option(
        PROGRAM_WORTH, "what each program owned is worth to the reward programs", at_least=0
    )
    curriculum: Curriculum | None = option(
        None,
        "levels of positions from which training games start: a YAML file or a name",
        section="curriculum",
        key="levels",
    )
    curriculum_start_level: int = option(
        1, "level at which a new run begins", at_least=1, section="curriculum", key="start_level"
    )

    def __post_init__(self) -> None:
        check(self)
        if self.multi_task != (self.task_list is not None):
            raise UserError(
                "--multi-task needs --task-list, the environments to train on"
                if self.multi_task
                else "--task-list needs --multi-task; --env names a single environment"
            )
        if self.multi_task and self.env != EnvironmentConfig.env:
            raise UserError(f"--env {self.env}: with --multi-task, --task-list names them all")
        has_levels = self.curriculum is not None and not own_code(self.name)
        if has_levels and environment_id(self.name) != ENVIRONMENT_ID:
            raise UserError(f"--curriculum has levels of HackMatrix, and --env is {self.name}")
        num_levels = 1 if self.curriculum is None else len(self.curriculum.levels)
        if self.curriculum_start_level > num_levels:
            raise UserError(
                f"--curriculum-start-level {self.curriculum_start_level}: "
                + ("needs --curriculum" if self.curriculum is None else f"of {num_levels} levels")
            )

    @property
    def name(self) -> str:
        """The name of the environment: that of `env`, or of all tasks together."""
        return self.env if self.task_list is None else self.task_list.environment

    @property
    def code_flags(self) -> tuple[str, ...]:
        """The flags that name the environment, if it is code of the user's own; else none."""
        if not own_code(self.name):
            return ()
        if self.task_list is None:
            return ("--env", self.env)
        return ("--task-list", f"[{', '.join(self.task_list)}]")

    def make(self, engine: str = "auto") -> "Environment":
        """The environment with this name, which is also the one of evaluations.

        Args:
            engine: engine that plays HackMatrix; "auto" chooses for the devices of this process.
        """
        settings = self.observation, self.max_episode_steps, self.reward
        return make_environment(self.name, *settings, self.win_worth, self.program_worth, engine)

    def for_training(self, env: "Environment") -> "Environment":
        """The environment to train on; evaluations always play the real game."""
        if self.curriculum is None:
            return env
        from hackmatrix.environments.curriculum.env import with_curriculum

        return with_curriculum(env, self.curriculum, self.curriculum_start_level)
