"""Parts of the learner that the study of the recipe exchanges for others.

They are no settings, as none of them has been worth one.
"""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import optax
from optax.contrib import muon

from hackmatrix.agents.networks.network import Network, make_network
from hackmatrix.core.compiled.kept_programs import keep_programs_in
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.learning.settings.config import TrainConfig

Array = jax.Array


@contextlib.contextmanager
def exchanged(part: str | None) -> Iterator[None]:
    """Context in which training uses another part: "muon", "symlog" or, with None, its own.

    Programs are not kept meanwhile: they would have the name of those with the learner's own part.
    """
    if part is None:
        yield
        return
    others: dict[str, dict[str, Any]] = {
        "muon": {"learner.ppo.optimizer": _muon},
        "symlog": {
            "learner.ppo.value_loss": _symlog_loss,
            "learner.trainer.make_network": _SymlogNetwork.of,
        },
    }
    keep_programs_in(None)
    keep = {"storage.compilation_cache.keep_programs_in": _keep_nowhere}
    with contextlib.ExitStack() as patches:
        for name, other in (keep | others[part]).items():
            patches.enter_context(patch(f"hackmatrix.{name}", other))
        yield


def _keep_nowhere(*_: Any, **__: Any) -> None:
    pass


def _muon(config: TrainConfig) -> optax.GradientTransformation:
    """Muon for matrices, with updates of the size of Adam's, and Adam for vectors."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),
        muon(1.0, consistent_rms=0.2),
        optax.scale(-1.0),  # directions, which the learner subtracts
    )


def _symlog(x: Array) -> Array:
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


def _symexp(x: Array) -> Array:
    return jnp.sign(x) * jnp.expm1(jnp.abs(x))


def _symlog_loss(value: Array, returns: Array) -> Array:
    return 0.5 * jnp.mean((_symlog(value) - _symlog(returns)) ** 2)


class _SymlogNetwork:
    """A network whose value head predicts the symlog of the return (Hafner et al. 2023)."""

    def __init__(self, network: Network) -> None:
        self._network = network

    @classmethod
    def of(cls, *args: Any) -> "_SymlogNetwork":
        return cls(make_network(*args))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def __call__(
        self, params: PyTree, observations: PyTree, carry: PyTree = ()
    ) -> tuple[Array, Array, PyTree]:
        logits, value, carry = self._network(params, observations, carry)
        return logits, _symexp(value), carry
