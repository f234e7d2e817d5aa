"""The settings that a compiled update takes as inputs: one program serves all of their values."""

import math
from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from hackmatrix.learning.ppo.config import SCHEDULES, Course, PPOConfig


class Hyperparameters(NamedTuple):
    """Python numbers on the host; in a compiled update arrays, float32[] or int32[]."""

    lr: Any
    lr_schedule: Any  # number of its name in `SCHEDULES`
    ent_coef: Any  # of the first update
    ent_coef_log_change: Any  # logarithm of the factor by which it changes in the whole run
    gamma: Any
    gae_lambda: Any
    clip_eps: Any
    vf_coef: Any
    max_grad_norm: Any
    target_kl: Any
    clip_value_loss: Any
    params_average: Any
    exploration_initial_eps: Any
    exploration_final_eps: Any
    exploration_fraction: Any
    search_weight: Any
    # The course of the run, in updates of the present batch size.
    first_update: Any
    made_before: Any  # of a resumed run: the transitions before `first_update`
    num_updates: Any  # of the whole run

    @classmethod
    def of(cls, config: PPOConfig, course: Course) -> "Hyperparameters":
        """Those of a run with these settings."""
        final = config.ent_coef if config.final_ent_coef is None else config.final_ent_coef
        made_before = course.first_timesteps / course.batch_size
        return cls(
            lr=config.lr,
            lr_schedule=SCHEDULES.index(config.lr_schedule),
            ent_coef=config.ent_coef,
            ent_coef_log_change=math.log(final / config.ent_coef) if config.ent_coef else 0.0,
            gamma=config.gamma,
            gae_lambda=config.gae_lambda,
            clip_eps=config.clip_eps,
            vf_coef=config.vf_coef,
            max_grad_norm=config.max_grad_norm,
            target_kl=config.target_kl or 0.0,  # not read without one
            clip_value_loss=config.clip_value_loss or 0.0,  # likewise
            params_average=config.params_average or 0.0,  # likewise
            exploration_initial_eps=config.exploration_initial_eps,
            exploration_final_eps=config.exploration_final_eps,
            exploration_fraction=config.exploration_fraction,
            search_weight=config.search_weight,
            first_update=course.first_update,
            made_before=made_before,
            num_updates=course.num_updates - course.first_update + made_before,
        )

    def as_arrays(self) -> "Hyperparameters":
        """NumPy arrays with the dtypes of the compiled update."""
        kinds = {"lr_schedule": np.int32, "first_update": np.int32}
        return Hyperparameters(
            **{name: kinds.get(name, np.float32)(x) for name, x in self._asdict().items()}
        )

    def learning_rate(self, update: Any, xp: ModuleType = jnp) -> Any:
        """Learning rate of an update (counted from 0); `xp` is jnp, or NumPy on the host."""
        progress = self._progress(update)
        factors = {
            "constant": xp.ones_like(progress),
            "linear": 1 - progress,
            "cosine": 0.5 * (1 + xp.cos(xp.pi * progress)),
        }
        return self.lr * xp.stack([factors[name] for name in SCHEDULES])[self.lr_schedule]

    def entropy_coef(self, update: Any, xp: ModuleType = jnp) -> Any:
        """Weight of the entropy bonus in an update; arguments as `learning_rate`."""
        return self.ent_coef * xp.exp(self.ent_coef_log_change * self._progress(update))

    def epsilon(self, update: Any, xp: ModuleType = jnp) -> Any:
        """Chance of a random action in an update, of epsilon-greedy play; arguments likewise."""
        part = xp.minimum(self._progress(update) / self.exploration_fraction, 1.0)
        change = self.exploration_final_eps - self.exploration_initial_eps
        return self.exploration_initial_eps + part * change

    def _progress(self, update: Any) -> Any:
        """The part of the run that is done before an update."""
        return (update - self.first_update + self.made_before) / self.num_updates
