"""The settings that a compiled update takes as inputs: one program serves all of their values."""

import math
from types import ModuleType
from typing import Any, Self

import jax.numpy as jnp
import numpy as np
from flax import struct

from hackmatrix.core.options import PRESENCE, options_of
from hackmatrix.learning.trainer.config import SCHEDULES, AlgorithmConfig, Course


class Hyperparameters(struct.PyTreeNode):
    """Python numbers on the host; in a compiled update arrays, float32[] or int32[].

    Those of the settings that are inputs are attributes: `hyper.gamma`. They are the fields of the
    algorithm's `Config` that are numbers with `compiled=False` or `PRESENCE`.
    """

    settings: dict[str, Any]  # by name; one that is None is 0 and not read
    lr_schedule: Any  # number of its name in `SCHEDULES`
    ent_coef_log_change: Any  # logarithm of the factor by which it changes in the whole run
    # The course of the run, in updates of the present batch size.
    first_update: Any
    made_before: Any  # of a resumed run: the transitions before `first_update`
    num_updates: Any  # of the whole run

    @classmethod
    def of(cls, config: AlgorithmConfig, course: Course) -> Self:
        """Those of a run with these settings."""
        made_before = course.first_timesteps / course.batch_size
        return cls(
            settings={
                name: getattr(config, name) or 0.0
                for name, option in options_of(type(config)).items()
                if option.value_type is float and option.compiled in (False, PRESENCE)
            },
            lr_schedule=SCHEDULES.index(config.lr_schedule),
            ent_coef_log_change=_log_change(config),
            first_update=course.first_update,
            made_before=made_before,
            num_updates=course.num_updates - course.first_update + made_before,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "settings":  # as when it is unpickled
            raise AttributeError(name)
        try:
            return self.settings[name]
        except KeyError:
            raise AttributeError(f"{name} is no setting that an update takes as input") from None

    def as_arrays(self) -> Self:
        """NumPy arrays with the dtypes of the compiled update."""
        floats = {name: np.float32(x) for name, x in self.settings.items()}
        return self.replace(
            settings=floats,
            lr_schedule=np.int32(self.lr_schedule),
            ent_coef_log_change=np.float32(self.ent_coef_log_change),
            first_update=np.int32(self.first_update),
            made_before=np.float32(self.made_before),
            num_updates=np.float32(self.num_updates),
        )

    def learning_rate(self, update: Any, xp: ModuleType = jnp) -> Any:
        """Learning rate of an update (counted from 0); `xp` is jnp, or NumPy on the host."""
        progress = self.progress(update)
        factors = {
            "constant": xp.ones_like(progress),
            "linear": 1 - progress,
            "cosine": 0.5 * (1 + xp.cos(xp.pi * progress)),
        }
        return self.lr * xp.stack([factors[name] for name in SCHEDULES])[self.lr_schedule]

    def entropy_coef(self, update: Any, xp: ModuleType = jnp) -> Any:
        """Weight of the entropy bonus in an update; arguments as `learning_rate`."""
        return self.ent_coef * xp.exp(self.ent_coef_log_change * self.progress(update))

    def epsilon(self, update: Any, xp: ModuleType = jnp) -> Any:
        """Chance of a random action in an update, of epsilon-greedy play; arguments likewise."""
        part = xp.minimum(self.progress(update) / self.exploration_fraction, 1.0)
        change = self.exploration_final_eps - self.exploration_initial_eps
        return self.exploration_initial_eps + part * change

    def progress(self, update: Any) -> Any:
        """The part of the run that is done before an update."""
        return (update - self.first_update + self.made_before) / self.num_updates


def _log_change(config: Any) -> float:
    """Of the weight of the entropy bonus; 0 for an algorithm that has none."""
    first = getattr(config, "ent_coef", 0.0)
    final = getattr(config, "final_ent_coef", None)
    return math.log(final / first) if first and final is not None else 0.0
