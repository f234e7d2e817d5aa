"""The settings that all learning algorithms share. Imports no JAX, so that `--help` is fast."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import yaml

from hackmatrix.agents.networks.architectures import (
    ALGORITHM_NAMES,
    ALGORITHMS,
    PPO,
    find_algorithm,
)
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import PRESENCE, check, option

MAX_GROUPS = 64
SCHEDULES = ("constant", "linear", "cosine")


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


class OwnSettings(dict[str, Any]):
    """Settings by name, of an algorithm of the user's own; its `Config` checks them."""

    @classmethod
    def of(cls, setting: Any) -> Self:
        """The settings from a mapping, or from the text of one in YAML's form.

        Raises:
            UserError: it is something else.
        """
        try:
            settings = yaml.safe_load(setting) if isinstance(setting, str) else setting
        except yaml.YAMLError:
            settings = None
        if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
            raise UserError(f'must be of the form "{{name: value}}", got {setting!r:.60}')
        return cls(settings)


@dataclass(frozen=True)
class AlgorithmConfig:
    """Settings that all algorithms share: games, batches, minibatches, optimizer.

    An algorithm's own settings are the fields of a subclass. A field of `compiled=False` or
    `PRESENCE` reaches the compiled update as an input, see `Hyperparameters`.
    """

    SECTION: ClassVar = "training"

    algorithm: str = option(
        PPO,
        "learning algorithm; module:Class for one of your own, see docs/training.md",
        choices=ALGORITHM_NAMES,
        names_code=True,
        common=True,
    )
    algorithm_settings: OwnSettings | None = option(
        None, 'settings of an algorithm of your own, as "{replay_size: 10000}"'
    )
    num_envs: int = option(
        256,
        "games that each agent plays in parallel",
        at_least=1,
        at_most=2**24,
        section="environment",
        common=True,
    )
    normalize_observations: bool = option(
        False,
        "normalize features to mean 0 and standard deviation 1, as seen so far",
        section="environment",
    )
    normalize_rewards: bool = option(
        True,
        "divide rewards by the root mean square of the returns seen so far",
        section="environment",
    )
    total_timesteps: int = option(
        10_000_000,
        "actions of an agent over all its games, rounded up to whole updates",
        at_least=1,
        at_most=2**53,
        compiled=False,
        common=True,
    )
    num_steps: int = option(
        128, "actions in each game between updates", at_least=1, at_most=2**20, common=True
    )
    lr: float = option(
        2.5e-4,
        "learning rate of Adam; scaled for large batches unless given",
        above=0,
        compiled=False,
        common=True,
        other_keys=("model.learning_rate", "training.learning_rate"),
    )
    lr_schedule: Literal["constant", "linear", "cosine"] = option(
        "constant",
        "learning rate over the run: constant, or falling to 0 linearly or as a cosine",
        compiled=False,
    )
    gamma: float = option(
        0.99, "discount factor", at_least=0, at_most=1, compiled=False, common=True
    )
    gae_lambda: float = option(
        0.95, "lambda of generalized advantage estimation", at_least=0, at_most=1, compiled=False
    )
    final_shaping: float | None = option(
        None,
        "part of a shaping reward, as programs pay, that is left at the end of the run, to which "
        "it falls linearly; default all",
        at_least=0,
        at_most=1,
        compiled=PRESENCE,
    )
    num_minibatches: int = option(
        4, "minibatches of a batch; scaled for large batches unless given", at_least=1
    )
    update_epochs: int = option(
        4,
        "passes over a batch; scaled for large batches unless given",
        at_least=1,
        other_keys=("training.n_epochs",),
    )
    gradient_accumulation_steps: int = option(
        1,
        "minibatches whose mean gradient makes one optimizer step",
        at_least=1,
        other_keys=("tpu.gradient_accumulation_steps",),
    )
    max_grad_norm: float = option(
        0.5, "global norm above which a gradient is scaled down", above=0, compiled=False
    )
    params_average: float | None = option(
        None,
        "export and evaluate the average of the params over about this part of the updates so far, "
        "the last ones",
        above=0,
        at_most=1,
        compiled=PRESENCE,
    )

    def __post_init__(self) -> None:
        check(self)
        if find_algorithm(self.algorithm).searches and self.normalize_rewards:
            raise UserError(
                f"--algorithm {self.algorithm} goes with --no-normalize-rewards: a search adds "
                "rewards to values"
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

    @property
    def is_own(self) -> bool:
        """Whether the algorithm is the user's own code."""
        return self.algorithm not in ALGORITHMS

    @property
    def code_flags(self) -> tuple[str, ...]:
        """The flags that name the algorithm, if it is the user's own; else none."""
        return ("--algorithm", self.algorithm) if self.is_own else ()

    @property
    def batch_size(self) -> int:
        """Number of transitions in one update of an agent."""
        return self.num_envs * self.num_steps

    @property
    def course(self) -> Course:
        """The course of a run that has this batch size from its start."""
        return Course(self.batch_size, self.total_timesteps)

    def num_groups(self, *, recurrent: bool) -> int:
        """Number of groups of games that are shuffled separately.

        It is the largest number of equal groups, at most 64, from which minibatches can take as
        many transitions each; whole games, if the network is recurrent.
        """
        steps = 1 if recurrent else self.num_steps
        return next(
            groups
            for groups in range(min(MAX_GROUPS, self.num_envs), 0, -1)
            if self.num_envs % groups == 0
            and steps * (self.num_envs // groups) % self.num_minibatches == 0
        )
