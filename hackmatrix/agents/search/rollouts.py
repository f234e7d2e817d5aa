"""Search by rollouts, in many games at once.

Each simulation makes the rest of a game up anew, takes one of the actions in question in it and
goes on as the network plays, for some moves. Its return is the TD(lambda) mean of the estimates
after each move (Sutton 1988): the early ones know less, the late ones hold more luck. As values are
read where the network comes to by itself, they are those that it was trained to know.

The actions of a position share the simulations by sequential halving (Karnin et al. 2013): in each
round all that are left are tried equally often, then half of them are dropped. They are tried in
the same made-up games and go on by the same chance, as backgammon programs roll plays out with
common dice: what differs between their returns is what the actions differ in.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.agents.networks import distribution
from hackmatrix.environments.interface.environment import PyTree

Array = jax.Array

_AT_ONCE = 64  # simulations: with more of them many places stay empty, and threads wait for others
# Moves of a simulation: the value after more of them is a better one, but it takes more simulations
# to read it through the luck of all these moves.
_MOST_MOVES = 24
_DOUBT = 8.0  # simulations as which the network's value counts in the improved policy
NONE = -1  # no action: a simulation has ended


class Model(NamedTuple):
    """N games as the player can imagine them, and the network.

    Attributes:
        imagine: (which of the games int32[L], worlds uint32[L]) -> states of L games that look like
            these. Hidden facts and dice depend on the world and on nothing else hidden.
        uniform: (which int32[L], worlds uint32[L], move int32[]) -> float32[L] in [0, 1), the
            chance by which the network chooses its action.
        step: (states, actions int32[L]) -> observations, states, rewards float32[L], ended bool[L].
            A game that has ended stays so, with reward 0.
        valid: states -> bool[L, A].
        judge: observations -> logits float32[L, A], values float32[L].
        weight: observations of the N games -> float32[N], logits that a reward of 1 is worth.
    """

    imagine: Callable[[Array, Array], PyTree]
    uniform: Callable[[Array, Array, Array], Array]
    step: Callable[[PyTree, Array], tuple[PyTree, PyTree, Array, Array]]
    valid: Callable[[PyTree], Array]
    judge: Callable[[PyTree], tuple[Array, Array]]
    weight: Callable[[PyTree], Array]


class SearchSettings(NamedTuple):
    """Settings of a search."""

    simulations: int
    discount: Any  # float, of the rewards and values that the network was trained on
    moves: int  # of the network after the action in question
    considered: int = 8  # actions that share the simulations, the most probable ones
    sure: float = 0.999  # probability above which the network's action needs no simulation

    @classmethod
    def of(cls, simulations: int, discount: Any) -> "SearchSettings":
        """The settings for so many simulations; `discount` may be traced."""
        return cls(simulations, discount, min(max(1, simulations // 4), _MOST_MOVES))

    @property
    def trace(self) -> float:
        """Lambda of TD(lambda): a return is a mean of the estimates after each move."""
        return self.moves / (self.moves + 1)


class SearchResult(NamedTuple):
    """What a search has found of N games, with S simulations each."""

    logits: Array  # float32[N, A], the network's
    values: Array  # float32[N], likewise
    visits: Array  # float32[N, A], simulations that began with each action
    totals: Array  # float32[N, A], the sum of their returns
    lines: Array  # int8[N, S, 1 + moves], the actions of each; `NONE` after its end

    def q(self) -> Array:
        """float32[N, A]: the mean return of each action; where there is none, the value."""
        known = self.totals / jnp.maximum(self.visits, 1)
        return jnp.where(self.visits > 0, known, self.values[:, None])


def search(
    model: Model, settings: SearchSettings, observations: PyTree, valid: Array
) -> tuple[SearchResult, Array]:
    """What the simulations found, and the best of the actions that were tried most, int32[N].

    Args:
        model: the games.
        settings: how to search.
        observations: what the players of N games see.
        valid: bool[N, A], the actions to choose from. Where there is none, nothing is searched.
    """
    games, actions = valid.shape
    logits, values = model.judge(observations)
    log_probs = distribution.log_probabilities(logits, valid)
    considered = min(settings.considered, actions)
    number = jnp.minimum(jnp.sum(valid, axis=1), considered)
    number = jnp.where(jnp.exp(jnp.max(log_probs, axis=1)) > settings.sure, 0, number)
    left, simulations_each = (
        jnp.asarray(table)[number] for table in halving(considered, settings.simulations)
    )
    weight = model.weight(observations)
    shape = games, settings.simulations, 1 + settings.moves
    zeros = jnp.zeros(valid.shape)
    result = SearchResult(logits, values, zeros, zeros, jnp.full(shape, NONE, jnp.int8))

    def play(
        round_: Array, carry: tuple[SearchResult, Array, Array]
    ) -> tuple[SearchResult, Array, Array]:
        result, done, worlds = carry
        now, times = left[:, round_], simulations_each[:, round_]
        trials = _Trials(done, worlds, now, times, _best_actions(result, valid, weight, considered))
        result = _with_trials(result, trials, model, settings)
        return result, done + now * times, worlds + times

    none = jnp.zeros(games, jnp.int32)
    result, *_ = jax.lax.fori_loop(0, left.shape[1], play, (result, none, none))
    return result, _best_actions(result, valid, weight, 1)[:, 0]


def improve(result: SearchResult, valid: Array, weight: float) -> tuple[Array, Array]:
    """The network's policy and value, improved by what the simulations brought.

    Actions gain by what they brought beyond the mean over the network's policy, of those that were
    tried; the network's value counts as one simulation in it. Means of few simulations say little,
    so each is taken with that mean, counted `_DOUBT` times.

    Args:
        result: of N games.
        valid: bool[N, A], the actions to choose from.
        weight: logits that a reward of 1 is worth.

    Returns:
        Probabilities float32[N, A], and the return float32[N] of who acts by them.
    """
    tried = distribution.log_probabilities(result.logits, valid & (result.visits > 0))
    total_visits = jnp.sum(result.visits, axis=1)
    mean = jnp.sum(jnp.exp(tried) * result.q(), axis=1)
    value = (result.values + jnp.where(total_visits > 0, total_visits * mean, 0)) / (
        1 + total_visits
    )
    gain = (result.totals - result.visits * value[:, None]) / (result.visits + _DOUBT)
    policy = jnp.exp(distribution.log_probabilities(result.logits + weight * gain, valid))
    return policy, value + jnp.sum(policy * gain, axis=1)


def halving(considered: int, simulations: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequential halving of up to `considered` actions: what to do in each round.

    Returns:
        int32[considered + 1, rounds] each: if n actions are considered, row n is how many of them
        are left in each round, and how often each of these is tried then.
    """
    rounds = max(1, int(np.ceil(np.log2(max(considered, 1)))))
    left, per_action = np.zeros((2, considered + 1, rounds), np.int32)
    for num_actions in range(1, considered + 1):
        needed, free = max(1, int(np.ceil(np.log2(num_actions)))), simulations
        for round_ in range(needed):
            now = min(max(2, num_actions >> round_), num_actions, free)
            times = free // now // (needed - round_) if now else 0
            times = max(times, 1) if now else 0
            left[num_actions, round_], per_action[num_actions, round_] = now, times
            free -= now * times
    return left, per_action


def _best_actions(result: SearchResult, valid: Array, weight: Array, num_best: int) -> Array:
    """int32[N, number]: the best of the actions that were tried most, the best one first."""
    visits = jnp.where(valid, result.visits, -1)
    left = visits == jnp.max(visits, axis=1, keepdims=True)
    score = result.logits + weight[:, None] * result.q()
    best: Array = jax.lax.top_k(jnp.where(left, score, -jnp.inf), num_best)[1]
    return best


class _Trials(NamedTuple):
    """The simulations of N games in a round."""

    done: Array  # int32[N], simulations before
    worlds: Array  # int32[N], worlds in which the actions left have been tried
    left: Array  # int32[N], actions
    times: Array  # int32[N], how often each is tried now
    order: Array  # int32[N, considered], actions, those left before the others


def _with_trials(
    result: SearchResult, trials: _Trials, model: Model, settings: SearchSettings
) -> SearchResult:
    """What is found, and what the simulations of a round bring, of all games in one row.

    They are played some at once, one after the other, as there are many in one round and few in
    another.
    """
    ends = jnp.cumsum(trials.left * trials.times)
    games = ends.size

    def add_some(i: Array, result: SearchResult) -> SearchResult:
        number = i * _AT_ONCE + jnp.arange(_AT_ONCE)
        due = jnp.searchsorted(ends, number, side="right")
        game = jnp.minimum(due, games - 1)  # numbers beyond the last one are of no game
        trial = number - jnp.where(game > 0, ends[game - 1], 0)
        left = jnp.maximum(trials.left[game], 1)
        action = trials.order[game, trial % left]
        world = (trials.worlds[game] + trial // left).astype(jnp.uint32)
        returns, lines = _rollouts(model, settings, result.values, game, action, world)
        return result._replace(
            visits=result.visits.at[due, action].add(1, mode="drop"),
            totals=result.totals.at[due, action].add(returns, mode="drop"),
            lines=result.lines.at[due, trials.done[game] + trial].set(lines, mode="drop"),
        )

    return jax.lax.fori_loop(0, (ends[-1] + _AT_ONCE - 1) // _AT_ONCE, add_some, result)


def _rollouts(
    model: Model,
    settings: SearchSettings,
    values: Array,
    which: Array,
    action: Array,
    worlds: Array,
) -> tuple[Array, Array]:
    """The returns float32[L] and lines int8[L, 1 + moves] of L simulations.

    A made-up game may lack what makes an action valid in the true one: then it tells nothing of the
    action, and the network's value of the position is returned.
    """

    def move(i: Array, walk: _SearchWalk) -> _SearchWalk:
        line = jnp.where(walk.ended, NONE, walk.action).astype(jnp.int8)
        seen, states, rewards, ended = model.step(walk.states, walk.action)
        rewarded = walk.rewarded + settings.discount**i * rewards
        logits, values = model.judge(seen)
        estimate = rewarded + jnp.where(ended, 0, settings.discount ** (i + 1) * values)
        share = jnp.where(i < settings.moves, 1 - settings.trace, 1) * settings.trace**i
        masks = model.valid(states)
        log_probs = distribution.log_probabilities(logits, masks)
        action = distribution.sample(log_probs, masks, model.uniform(which, worlds, i))
        returns = walk.returns + share * estimate
        return _SearchWalk(states, action, ended, rewarded, returns, walk.lines.at[:, i].set(line))

    nothing = jnp.zeros(action.size)
    lines = jnp.full((action.size, 1 + settings.moves), NONE, jnp.int8)
    states = model.imagine(which, worlds)
    allowed = jnp.take_along_axis(model.valid(states), action[:, None], axis=1)[:, 0]
    start = _SearchWalk(states, action, nothing > 0, nothing, nothing, lines)
    end = jax.lax.fori_loop(0, 1 + settings.moves, move, start)
    return jnp.where(allowed, end.returns, values[which]), end.lines


class _SearchWalk(NamedTuple):
    """L simulations under way."""

    states: PyTree
    action: Array  # int32[L], the next one
    ended: Array  # bool[L], whether the game is over
    rewarded: Array  # float32[L], the sum of the discounted rewards so far
    returns: Array  # float32[L], likewise of the shares of the estimates
    lines: Array  # int8[L, 1 + moves]
