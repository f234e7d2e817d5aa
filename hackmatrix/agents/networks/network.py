"""The interface of networks for the learner and the players, and the function that makes one."""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from hackmatrix.agents.networks.architectures import ARCHITECTURES, NetworkConfig
from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.interface.environment import Environment, PyTree
from hackmatrix.environments.user_code import convert_errors

Array = jax.Array


class Sharing(NamedTuple):
    """The relation of all params of a network to the independent ones.

    Both are trees of the same structure; of some arrays the independent part is smaller.
    """

    independent: Callable[[PyTree], PyTree]  # from all params
    whole: Callable[[PyTree], PyTree]  # from the independent ones
    copies: Callable[[PyTree], PyTree]  # of each number of an independent array: ints

    def share(self, params: PyTree) -> PyTree:
        """All params with the independent ones of `params`."""
        return self.whole(self.independent(params))


class Network(Protocol):
    """Maps the observations of B games to logits and values.

    A recurrent network has a carry for each game: a pytree of arrays with the leading axis B. The
    carry of other networks is the empty tree `()`.

    A network may have a method `encode(observations)`: rollouts then store what it returns instead
    of the observations, and the network is called with it. A recurrent one may have a method
    `unroll(params, observations, starts, carry)`, which returns logits [T, B, A] and values [T, B]
    of sequences and is called instead of the function below, to compute for all steps at once what
    does not depend on the carry. One that shares weights says by `sharing` which are independent:
    these alone are learned.

    Attributes:
        num_actions: that of the environment.
        recurrent: whether the network has a carry.
        reads_features: whether the layer `params["params"]["Dense_0"]` alone reads
            `Environment.features`: then features can be normalised by changing that layer, see
            `agents/networks/normalisation.py`.
    """

    num_actions: int
    recurrent: bool
    reads_features: bool

    def init(self, key: Array) -> PyTree:
        """Freshly initialised params: nested dicts of float32 arrays."""

    def initial_carry(self, num_games: int) -> PyTree:
        """The carry at the start of `num_games` episodes."""

    def __call__(
        self, params: PyTree, observations: PyTree, carry: PyTree = ()
    ) -> tuple[Array, Array, PyTree]:
        """Logits float32[B, A] and values float32[B] of B observations, and the next carry."""


_MEMBERS = ("num_actions", "recurrent", "reads_features", "init", "initial_carry", "__call__")


@with_jax_defaults
def make_network(env: Environment, config: NetworkConfig) -> Network:
    """Makes the network that `config` describes for this environment.

    Raises:
        UserError: it is the user's own, and fails, is no `Network`, or was named by a file alone.
    """
    if config.is_own:
        network = _own_network(env, config)
    else:
        network = importlib.import_module(ARCHITECTURES[config.architecture].module).make(
            env, config
        )
    return network if config.value == "return" else ChanceNetwork(network)


def _own_network(env: Environment, config: NetworkConfig) -> Network:
    make = config.own_code()
    with convert_errors(f"network {config.architecture}"):
        network: Network = make(env, config)
        check_network(env, network)
        if network.recurrent != config.recurrent:
            raise UserError(
                "whether it has a memory is asked before it is made: name a class with the "
                f"attribute recurrent = {network.recurrent}"
            )
    return network


@with_jax_defaults
def check_network(env: Environment, network: Any) -> None:
    """Traces a network for its shapes; nothing is run.

    Raises:
        UserError: it lacks a member of `Network`, or what it returns has another form.
    """
    missing = [name for name in _MEMBERS if not hasattr(network, name)]
    if missing or isinstance(network, type):
        what = f"has no {', '.join(missing)}" if missing else "is a class, not an object of it"
        raise UserError(f"network: {type(network).__name__} {what}; see agents/networks/network.py")
    games = 2
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), games))
    observations, _ = jax.eval_shape(jax.vmap(env.reset), keys)
    params = jax.eval_shape(network.init, jax.random.key(0))
    carry = jax.eval_shape(lambda: network.initial_carry(games))
    read = jax.eval_shape(lambda x: encode_observations(network, x), observations)
    answer = jax.eval_shape(network, params, read, carry)
    if not isinstance(answer, tuple) or len(answer) != 3:
        raise UserError("network: must return logits, values and the carry")
    logits, values, after = answer
    expected = (
        ("the logits", jax.ShapeDtypeStruct((games, env.num_actions), jnp.float32), logits),
        ("the values", jax.ShapeDtypeStruct((games,), jnp.float32), values),
        ("the carry after a step", carry, after),
    )
    for name, wanted, got in expected:
        if _forms(wanted) != _forms(got):
            raise UserError(f"network: {name} must be {_text(wanted)}, is {_text(got)}")
    if not all(leaf.shape[:1] == (games,) for leaf in jax.tree.leaves(carry)):
        raise UserError(f"network: the carry of {games} games has no such leading axis")


def _forms(tree: PyTree) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def _text(tree: PyTree) -> str:
    shown = jax.tree.map(lambda x: f"{x.dtype}[{', '.join(map(str, x.shape))}]", tree)
    return str(shown).replace("'", "")


def encode_observations(network: Network, observations: PyTree) -> PyTree:
    """The observations of B games as the network reads them."""
    encode = getattr(network, "encode", None)
    return observations if encode is None else encode(observations)


def sharing_of(network: Network) -> Sharing:
    """The sharing of a network; unless it has one, all of its params are independent."""
    ours: Sharing | None = getattr(network, "sharing", None)
    return ours or Sharing(_same, _same, lambda params: jax.tree.map(lambda _: 1, params))


def _same(params: PyTree) -> PyTree:
    return params


def reset_carry(network: Network, carry: PyTree, starts: Array) -> PyTree:
    """The carry of B games, reset to the initial one where an episode starts (bool[B])."""
    if not network.recurrent:
        return carry
    first = network.initial_carry(starts.shape[0])
    return jax.tree.map(
        lambda new, old: jnp.where(starts.reshape(-1, *[1] * (new.ndim - 1)), new, old),
        first,
        carry,
    )


def unroll(
    network: Network, params: PyTree, observations: PyTree, starts: Array, carry: PyTree
) -> tuple[Array, Array]:
    """Logits float32[T, B, A] and values float32[T, B] of T steps of B games.

    Args:
        network: a recurrent one.
        params: its params.
        observations: arrays [T, B, ...], encoded.
        starts: bool[T, B], whether a step is the first of its episode.
        carry: the carry before the first step.
    """
    if (all_at_once := getattr(network, "unroll", None)) is not None:
        return all_at_once(params, observations, starts, carry)

    def step(carry: PyTree, now: tuple[PyTree, Array]) -> tuple[PyTree, tuple[Array, Array]]:
        observation, starting = now
        carry = reset_carry(network, carry, starting)
        logits, values, carry = network(params, observation, carry)
        return carry, (logits, values)

    _, outputs = jax.lax.scan(step, carry, (observations, starts))
    return outputs


@with_jax_defaults
class ChanceNetwork:
    """Another network with the sigmoid of its value: the chance of an outcome, 0..1."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.num_actions = network.num_actions
        self.recurrent = network.recurrent
        self.reads_features = network.reads_features
        self.sharing = sharing_of(network)
        self.init = network.init
        self.initial_carry = network.initial_carry

    def encode(self, observations: PyTree) -> PyTree:
        """The observations as the network reads them."""
        return encode_observations(self._network, observations)

    def __call__(
        self, params: PyTree, observations: PyTree, carry: PyTree = ()
    ) -> tuple[Array, Array, PyTree]:
        """Logits float32[B, A], chances float32[B] of B encoded observations, and the carry."""
        logits, values, carry = self._network(params, observations, carry)
        return logits, jax.nn.sigmoid(values), carry

    def unroll(
        self, params: PyTree, observations: PyTree, starts: Array, carry: PyTree
    ) -> tuple[Array, Array]:
        """Logits float32[T, B, A] and chances float32[T, B]; see the function `unroll`."""
        logits, values = unroll(self._network, params, observations, starts, carry)
        return logits, jax.nn.sigmoid(values)
