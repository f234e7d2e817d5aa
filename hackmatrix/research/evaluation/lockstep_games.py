"""Evaluation games of HackMatrix whose player chooses in many games at once; no JAX."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hackmatrix.agents.networks.numpy_forward import forward_pass
from hackmatrix.agents.networks.policy import Policy, load_policy
from hackmatrix.agents.roster.opinion import weigh
from hackmatrix.core.imports import need
from hackmatrix.core.processes import num_cores
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.hackmatrix.observations import observations_of
from hackmatrix.game import native
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.research.evaluation.account_report import report_of_accounts
from hackmatrix.research.evaluation.accounts import Account, account
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.report import Play, Report

Array = np.ndarray[Any, Any]
_AT_ONCE = 1024  # games, so that their observations fit in memory


class Positions(NamedTuple):
    """The positions of K games under way."""

    episodes: Array  # int[K], of the games in their stream
    time: int  # actions taken in each
    records: Array  # uint8[K, RECORD_SIZE]
    masks: Array  # bool[K, 28]


Choose = Callable[[Positions], Any]  # to actions, integers [K]


def lockstep_accounts(choose: Choose, limits: Limits) -> list[Account]:
    """The accounts of games: in the native engine, else one after another in the Python engine."""
    play = _native if native.available else _in_python
    accounts = list[Account]()
    for first in range(0, limits.episodes, _AT_ONCE):
        number = min(_AT_ONCE, limits.episodes - first)
        accounts += play(choose, limits._replace(episodes=number, first=limits.first + first))
    return accounts


def _native(choose: Choose, limits: Limits) -> list[Account]:
    from hackmatrix.game.native.batch import flags, observe
    from hackmatrix.game.native.layout import Games
    from hackmatrix.research.evaluation.native_replays import native_accounts

    def actions(time: int, due: Array, games: Games) -> Any:
        records, masks = observe(games)
        return choose(Positions(limits.first + due, time, records[due], flags(masks[due])))

    count, stream = limits.episodes, EVALUATION_STREAM + limits.seed
    numbers = range(limits.first, limits.first + count)
    return native_accounts([stream] * count, numbers, [limits.max_steps] * count, actions)


def _in_python(choose: Choose, limits: Limits) -> list[Account]:
    def of_game(episode: int) -> Callable[[State], int]:
        def action(state: State) -> int:
            mask = np.zeros((1, NUM_ACTIONS), np.bool_)
            mask[0, valid_actions(state)] = True
            record = np.frombuffer(observe(state), np.uint8)[None].copy()
            return int(choose(Positions(np.array([episode]), state.dice.clock, record, mask))[0])

        return action

    stream, end = EVALUATION_STREAM + limits.seed, limits.first + limits.episodes
    numbers = range(limits.first, end)
    return [account(stream, number, of_game(number), limits.max_steps) for number in numbers]


# --- Games of HackMatrix's networks on NumPy, where JAX is not installed; slower than in JAX ------


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
