"""Games of a policy that is a function: in NumPy without JAX, or in JAX."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hackmatrix.agents.networks.policy import Policy
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import are_installed, need
from hackmatrix.core.processes import num_cores
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.hackmatrix.observations import check_observation, observations_of
from hackmatrix.environments.registry import environment_id
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.research.evaluation.account_report import report_of_accounts
from hackmatrix.research.evaluation.agents import SLOWER
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.lockstep_games import Positions, lockstep_accounts, numpy_player
from hackmatrix.research.evaluation.report import Report

Array = np.ndarray[Any, Any]
NumpyPolicy = Callable[[Array, Array], Any]


def takes_arrays(policy: Any) -> bool:
    """Whether a policy is called with (observation, mask), not (params, observation, mask, key).

    Raises:
        UserError: it takes neither two nor four arguments.
    """
    for arguments in (2, 4):
        try:
            inspect.signature(policy).bind(*range(arguments))
        except (TypeError, ValueError):  # another number, not callable, or no one knows
            continue
        return arguments == 2
    raise UserError(
        "an agent is a name, or a function of (observation, mask) in NumPy or of (params, "
        f"observation, mask, key) in JAX, got {policy!r:.80}"
    )


def function_report(
    policy: Any,
    params: Any,
    observation: str,
    env: str,
    limits: Limits,
    *,
    greedy: bool = False,
    search: int | None = None,
) -> Report:
    """The report on the games of a loaded network or of a function; see `hackmatrix.evaluate`.

    Raises:
        UserError: there is no such environment or observation, an argument does not go with this
            kind of policy, or it doesn't return actions.
    """
    if isinstance(policy, Policy):
        if observation not in ("compact", policy.observation):
            raise UserError(
                f"observation goes with functions; {policy.path} reads {policy.observation}"
            )
        if params is not None:
            policy = replace(policy, params=params)
        if search is None and not are_installed("jax", "flax"):
            print(f"{policy.path}: {SLOWER}", file=sys.stderr)
            return numpy_player(policy, limits, greedy=greedy)(())
        need("jax", "flax")
        from hackmatrix.research.evaluation.jax_agents import network_report

        return network_report(policy, env, limits, greedy=greedy, search=search)
    in_numpy = takes_arrays(policy)
    if greedy or search is not None:
        raise UserError("greedy and search go with networks; a function decides by itself")
    if not in_numpy:
        need("jax", "flax")
        from hackmatrix.research.evaluation.jax_agents import jax_report

        return jax_report(policy, params, observation, env, limits)
    if params is not None:
        raise UserError("params go with a function of (params, observation, mask, key)")
    if environment_id(env) != ENVIRONMENT_ID:
        raise UserError(f"a function in NumPy plays {ENVIRONMENT_ID}, not {env}")
    return numpy_report(policy, observation, limits)


def numpy_report(policy: NumpyPolicy, observation: str, limits: Limits) -> Report:
    """The report on the games of a policy in NumPy.

    Args:
        policy: from observations of K games and masks bool[K, 28] to actions int[K].
        observation: what it is shown, one of `OBSERVATIONS`.
        limits: which games.

    Raises:
        UserError: there is no such observation, or it does not return actions.
    """
    check_observation(observation)

    def ask(positions: Positions) -> Array:
        seen = observations_of(positions.records, observation, threads=num_cores())
        return _actions(policy(seen, positions.masks), len(positions.masks))

    return report_of_accounts(lockstep_accounts(ask, limits), limits)


def _actions(answer: Any, games: int) -> Array:
    if isinstance(answer, tuple) and len(answer) == 2 and np.ndim(answer[0]) == 1:
        answer, _ = answer  # (actions, state), as Stable-Baselines3's `predict` returns them
    try:
        actions = np.asarray(answer)
    except ValueError:
        raise UserError(
            f"the policy must return one action a game, int[{games}], got {answer!r:.80}"
        ) from None
    if actions.shape != (games,) or actions.dtype.kind not in "iu":
        got = f"{actions.dtype}{list(actions.shape)}"
        raise UserError(f"the policy must return one action a game, int[{games}], got {got}")
    if actions.min() < 0 or actions.max() >= NUM_ACTIONS:
        got = f"{actions.min()}..{actions.max()}"
        raise UserError(f"actions must be 0..{NUM_ACTIONS - 1}, the policy returned {got}")
    return actions
