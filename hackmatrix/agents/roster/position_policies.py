"""Agents from files of params, asked of one position, computed with NumPy where that can.

Only networks that `agents/networks/numpy_forward.py` lacks load JAX, when they are first asked.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from hackmatrix.agents.roster.opinion import Agent, PolicyFunction, RecurrentPolicy
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.core.version import ENVIRONMENT_ID

if TYPE_CHECKING:
    from hackmatrix.agents.networks.numpy_forward import Pass
    from hackmatrix.agents.networks.policy import Policy

Make = Callable[[], Agent]
Step = Callable[[bytes, Any], tuple[Sequence[float], float, Any]]


def from_file(path: Path, name: str) -> Make:
    """A function that loads the agent of a file of params, once; its errors are `UserError`."""
    lock, agents = Lock(), list[Agent]()

    def make() -> Agent:
        with lock:  # two tabs may ask at once
            if not agents:
                agents.append(Agent(name, load(path)))
            return agents[0]

    return make


def load(path: Path) -> PolicyFunction | RecurrentPolicy:
    """The policy of a file of params.

    Raises:
        UserError: the file is missing, damaged, or of another game.
    """
    policy, forward = network_of(path)
    step = _with_jax(policy) if forward is None else partial(_step, forward, policy.observation)
    if policy.config.recurrent:
        return RecurrentPolicy(step)
    return lambda record, _: step(record, None)[:2]


def network_of(path: Path) -> "tuple[Policy, Pass | None]":
    """The network of HackMatrix in a file of params, and its forward pass on NumPy if it has one.

    Raises:
        UserError: the file is missing, damaged, or of another game.
    """
    from hackmatrix.agents.networks.numpy_forward import forward_pass
    from hackmatrix.agents.networks.policy import load_policy

    policy = load_policy(path)
    if policy.environment != ENVIRONMENT_ID:
        raise UserError(f"{policy.path}: plays {policy.environment:.60}, not {ENVIRONMENT_ID}")
    return policy, forward_pass(policy)


def _step(
    forward: "Pass", layout: str, record: bytes, memory: Any
) -> tuple[Sequence[float], float, Any]:
    from hackmatrix.game.foresight.features import features

    logits, value, memory = forward(features(record, layout), memory)
    return logits.tolist(), value, memory


def _with_jax(policy: "Policy") -> Step:
    """Any network's answer, and its carry; JAX is loaded when it is first asked."""
    need("jax", "flax")

    @cache
    def make() -> tuple[Callable[[Any, Any], Any], Any]:
        """From records uint8[N, RECORD_SIZE] and a carry to logits, values, carry; the first."""
        import jax

        from hackmatrix.agents.networks.network import encode_observations
        from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache

        enable_compilation_cache()
        _, network = policy.make()
        forward = jax.jit(
            lambda seen, carry: network(policy.params, encode_observations(network, seen), carry)
        )
        return forward, network.initial_carry(1)

    def step(record: bytes, memory: Any) -> tuple[Sequence[float], float, Any]:
        import numpy as np

        forward, first = make()
        records = np.frombuffer(record, np.uint8)[None]
        logits, value, carry = forward(records, first if memory is None else memory)
        return np.asarray(logits[0]).tolist(), float(value[0]), carry

    return step
