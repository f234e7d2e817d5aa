"""Games of HackMatrix's networks on NumPy, where JAX is not installed; slower than in JAX."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from hackmatrix.agents.networks.numpy_forward import forward_pass
from hackmatrix.agents.networks.policy import Policy, load_policy
from hackmatrix.agents.roster.opinion import weigh
from hackmatrix.core.extras import need
from hackmatrix.core.processes.cores import num_cores
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.hackmatrix.observations import observations_of
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.research.evaluation.account_report import report_of_accounts
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.lockstep_games import Positions, lockstep_accounts
from hackmatrix.research.evaluation.report import Play, Report

Array = np.ndarray[Any, Any]


def numpy_player(params: Path | Policy, limits: Limits, *, greedy: bool) -> Play:
    """A function that plays a network's games; its actions are those that the page shows.

    Args:
        params: its file or run's folder, or what was loaded.
        limits: which games.
        greedy: whether it takes its most probable action.

    Raises:
        UserError: the params are damaged, or the network is one that only JAX plays.
    """
    policy = params if isinstance(params, Policy) else load_policy(params)
    forward = forward_pass(policy) if policy.environment == ENVIRONMENT_ID else None
    if forward is None:
        need("jax", "flax")
        raise AssertionError("only called where they are missing")
    takes_best = greedy or policy.greedy
    stream = EVALUATION_STREAM + limits.seed

    def play(forbidden: Collection[int] = (), first: int | None = None) -> Report:
        games = limits if first is None else limits._replace(first=first)
        memories = dict[int, Any]()  # by the games' numbers

        def choose(positions: Positions) -> list[int]:
            features = observations_of(positions.records, policy.observation, threads=num_cores())
            masks = positions.masks.copy()
            masks[:, list(forbidden)] = False
            masks = np.where(masks.any(axis=1, keepdims=True), masks, positions.masks)
            actions = []
            for episode, row, mask in zip(
                positions.episodes.tolist(), features, masks, strict=True
            ):
                logits, value, memory = forward(row, memories.get(episode))
                if memory is not None:
                    memories[episode] = memory
                opinion = weigh(str(policy.path), logits.tolist(), value, mask.tolist())
                game = GameId(stream, episode)
                actions.append(opinion.best if takes_best else opinion.sample(game, positions.time))
            return actions

        return report_of_accounts(lockstep_accounts(choose, games), games)

    return play
