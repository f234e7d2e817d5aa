"""Open-loop Monte Carlo tree search in many games at once.

A node is a sequence of actions, whatever chance answered to them. Each simulation follows the tree
in a game made up anew and takes one action further; what is seen there the network judges. So the
statistics of a node are means over chance, and no simulation can count on how the dice fell in
another one. States are not kept: a simulation plays its actions again, which costs less than the
network.

At the root the most probable actions share the simulations by sequential halving (Danihelka et al.
2022, https://openreview.net/forum?id=bERaNdoegnO, without noise); below, PUCT chooses (Silver et
al. 2017). Actions that are compared at the root are tried in the same made-up games.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.environments.interface.environment import PyTree

Array = jax.Array

_INVALID = -1e9
_DOUBT = 8.0  # simulations as which the root's value counts in the improved policy
NONE = -1  # the action of a game that has come to its leaf


class Model(NamedTuple):
    """N games as the player can imagine them, and what judges them.

    Attributes:
        imagine: (observations, number uint32[N]) -> states of games that look like these
            observations. Hidden facts and dice depend on the number and on nothing else hidden.
        step: (states, actions int32[N]) -> observations, states, rewards float32[N], ended bool[N].
            A game whose action is `NONE` may do anything.
        valid: states -> bool[N, A].
        judge: observations -> logits float32[N, A], values float32[N].
        weight: observations of the roots -> float32[N], logits that a reward of 1 is worth.
    """

    imagine: Callable[[PyTree, Array], PyTree]
    step: Callable[[PyTree, Array], tuple[PyTree, PyTree, Array, Array]]
    valid: Callable[[PyTree], Array]
    judge: Callable[[PyTree], tuple[Array, Array]]
    weight: Callable[[PyTree], Array]


class Settings(NamedTuple):
    """Settings of a search."""

    simulations: int
    discount: float  # of the rewards and values that the network was trained on
    considered: int = 8  # actions that share the simulations at the root, the most probable ones
    exploration: float = 1.0  # PUCT's constant
    depth: int = 10  # actions after which a simulation stops


class Tree(NamedTuple):
    """Nodes of N games, M = simulations + 1 each; node 0 is the root.

    Rows of one node each, without the axis M, are a `Tree` too.
    """

    children: Array  # int32[N, M, A], 0 where there is none
    visits: Array  # float32[N, M, A]
    totals: Array  # float32[N, M, A], the sum of the returns from the action on
    logits: Array  # float32[N, M, A], the network's
    values: Array  # float32[N, M], likewise

    def at(self, node: Array) -> "Tree":
        """One node int32[N] of each game."""
        return Tree(*(field[jnp.arange(node.size), node] for field in self))

    def root(self) -> "Tree":
        """The roots."""
        return Tree(*(field[:, 0] for field in self))

    def q(self) -> Array:
        """The mean return of each action; where there is none yet, that of all, the value included.

        The value alone would be too high: returns are those of a player who tries things out.
        """
        known = self.totals / jnp.maximum(self.visits, 1)
        mean = (self.values + jnp.sum(self.totals, axis=-1)) / (1 + jnp.sum(self.visits, axis=-1))
        return jnp.where(self.visits > 0, known, mean[..., None])


def search(
    model: Model, settings: Settings, observations: PyTree, valid: Array
) -> tuple[Tree, Array]:
    """The tree after all simulations, and the best of the actions that were tried most, int32[N].

    Args:
        model: the games.
        settings: how to search.
        observations: what the players of N games see.
        valid: bool[N, A], the actions to choose from. Where there is none, nothing is searched.
    """
    games, actions = valid.shape
    logits, values = model.judge(observations)
    shape = games, settings.simulations + 1, actions
    tree = Tree(
        children=jnp.zeros(shape, jnp.int32),
        visits=jnp.zeros(shape),
        totals=jnp.zeros(shape),
        logits=jnp.zeros(shape).at[:, 0].set(logits),
        values=jnp.zeros(shape[:2]).at[:, 0].set(values),
    )
    halving = jnp.asarray(halving_visits(min(settings.considered, actions), settings.simulations))
    number = jnp.minimum(jnp.sum(valid, axis=1), settings.considered)
    weight = model.weight(observations)

    def simulate(i: Array, tree: Tree) -> Tree:
        root = tree.root()
        candidates = valid & (root.visits == halving[number, i][:, None])
        action = _first_of(_policy_logits(root, weight), candidates)
        world = jnp.take_along_axis(root.visits, action[:, None], axis=1)[:, 0]
        states = model.imagine(observations, world.astype(jnp.uint32))
        walking = candidates.any(axis=1)
        walk = _walk(model, settings, tree, states, action, observations, walking, weight)
        return _with_leaf(tree, walk, i + 1, *model.judge(walk.leaf), settings)

    tree = jax.lax.fori_loop(0, settings.simulations, simulate, tree)
    root = tree.root()
    visits = jnp.where(valid, root.visits, -1)
    most = visits == jnp.max(visits, axis=1, keepdims=True)
    return tree, _first_of(_policy_logits(root, weight), valid & most)


def improved(tree: Tree, valid: Array, weight: float) -> tuple[Array, Array]:
    """The network's policy and value, improved by what the simulations brought.

    Actions gain by what they brought beyond the mean over the network's policy, of those that were
    tried; the root's value counts as one simulation in it. (The value alone would be above most
    means, as simulations try things out, and actions that were not tried would seem to gain.) Means
    of few simulations say little, so each is taken with that mean, counted `_DOUBT` times.

    Args:
        tree: of N games.
        valid: bool[N, A], the actions to choose from.
        weight: logits that a reward of 1 is worth.

    Returns:
        Probabilities float32[N, A], and the return float32[N] of who acts by them.
    """
    root = tree.root()
    prior = jax.nn.softmax(jnp.where(valid & (root.visits > 0), root.logits, _INVALID))
    number = jnp.sum(root.visits, axis=1)
    value = (root.values + number * jnp.sum(prior * root.q(), axis=1)) / (1 + number)
    gain = (root.totals - root.visits * value[:, None]) / (root.visits + _DOUBT)
    policy = jax.nn.softmax(jnp.where(valid, root.logits + weight * gain, _INVALID))
    return policy, value + jnp.sum(policy * gain, axis=1)


def halving_visits(considered: int, simulations: int) -> np.ndarray:
    """int32[considered + 1, simulations]: sequential halving of up to `considered` actions.

    Entry [n, i] is how often the action that simulation i tries has been tried before, if n actions
    are considered: of those with so many visits it takes the best.
    """
    table = np.tile(np.arange(simulations, dtype=np.int32), (considered + 1, 1))
    for number in range(2, considered + 1):
        rounds = int(np.ceil(np.log2(number)))
        visits, tried, left = 0, 0, number
        while tried < simulations:
            for _ in range(max(1, simulations // (rounds * left))):
                table[number, tried : tried + left] = visits
                tried, visits = tried + left, visits + 1
            left = max(2, left // 2)
    return table


def _policy_logits(node: Tree, weight: Array) -> Array:
    """float32[N, A]: the network's logits, improved by what the actions brought."""
    return node.logits + weight[:, None] * node.q()


def _first_of(score: Array, candidates: Array) -> Array:
    return jnp.argmax(jnp.where(candidates, score, -jnp.inf), axis=1).astype(jnp.int32)


def _puct(node: Tree, valid: Array, weight: Array, exploration: float) -> Array:
    """int32[N]: the action with the largest upper bound among those that are valid in this game."""
    prior = jax.nn.softmax(jnp.where(valid, node.logits, _INVALID))
    visits = jnp.sum(node.visits, axis=1, keepdims=True)
    bonus = exploration * prior * jnp.sqrt(visits + 1) / (1 + node.visits)
    return _first_of(weight[:, None] * node.q() + bonus, valid)


class _Walk(NamedTuple):
    """N simulations on their way from the root to their leaves."""

    steps: Array  # int32
    states: PyTree
    node: Array  # int32[N], where they are
    action: Array  # int32[N], what they do next
    walking: Array  # bool[N]
    leaf: PyTree  # the last observations
    ended: Array  # bool[N], whether the game ended there
    nodes: Array  # int32[depth, N], where each action was taken
    actions: Array  # int32[depth, N], `NONE` after the leaf
    rewards: Array  # float32[depth, N]


def _walk(
    model: Model,
    settings: Settings,
    tree: Tree,
    states: PyTree,
    action: Array,
    observations: PyTree,
    walking: Array,
    weight: Array,
) -> _Walk:
    """Walks down until the tree, the game or the depth ends."""
    nowhere = jnp.zeros((settings.depth, action.size), jnp.int32)
    start = _Walk(
        steps=jnp.int32(0),
        states=states,
        node=jnp.zeros_like(action),
        action=action,
        walking=walking,
        leaf=observations,
        ended=jnp.zeros_like(walking),
        nodes=nowhere,
        actions=nowhere + NONE,
        rewards=nowhere.astype(jnp.float32),
    )

    def step(walk: _Walk) -> _Walk:
        taken = jnp.where(walk.walking, walk.action, NONE)
        seen, states, rewards, ended = model.step(walk.states, taken)
        child = tree.children[jnp.arange(taken.size), walk.node, walk.action]
        return _Walk(
            steps=walk.steps + 1,
            states=states,
            node=child,
            action=_puct(tree.at(child), model.valid(states), weight, settings.exploration),
            walking=walk.walking & ~ended & (child > 0),
            leaf=_where(walk.walking, seen, walk.leaf),
            ended=walk.ended | (walk.walking & ended),
            nodes=walk.nodes.at[walk.steps].set(walk.node),
            actions=walk.actions.at[walk.steps].set(taken),
            rewards=walk.rewards.at[walk.steps].set(rewards),
        )

    def goes_on(walk: _Walk) -> Array:
        return walk.walking.any() & (walk.steps < settings.depth)

    return jax.lax.while_loop(goes_on, step, start)


def _with_leaf(
    tree: Tree, walk: _Walk, new: Array, logits: Array, values: Array, settings: Settings
) -> Tree:
    """The tree with the leaves as nodes `new`, and with the returns of the walks to them."""
    games = jnp.arange(values.size)
    last = jnp.maximum(jnp.sum(walk.actions != NONE, axis=0) - 1, 0)
    node, action = walk.nodes[last, games], walk.actions[last, games]
    is_new = (action != NONE) & ~walk.ended & (tree.children[games, node, action] == 0)
    tree = tree._replace(
        children=tree.children.at[games, node, action].add(jnp.where(is_new, new, 0)),
        logits=tree.logits.at[:, new].set(logits),
        values=tree.values.at[:, new].set(values),
    )

    def add(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        visits, totals, gain = carry
        step = walk.steps - 1 - i
        at, action = walk.nodes[step], walk.actions[step]
        taken = action != NONE
        gain = jnp.where(taken, walk.rewards[step] + settings.discount * gain, gain)
        visits = visits.at[games, at, action].add(taken.astype(jnp.float32))
        return visits, totals.at[games, at, action].add(jnp.where(taken, gain, 0)), gain

    start = tree.visits, tree.totals, jnp.where(walk.ended, 0, values)
    visits, totals, _ = jax.lax.fori_loop(0, walk.steps, add, start)
    return tree._replace(visits=visits, totals=totals)


def _where(chosen: Array, new: PyTree, old: PyTree) -> PyTree:
    def one(new: Array, old: Array) -> Array:
        return jnp.where(chosen.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(one, new, old)
