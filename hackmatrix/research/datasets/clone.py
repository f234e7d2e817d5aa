"""Behaviour cloning: a network learns the actions and the returns of recorded games."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import (
    Network,
    encode_observations,
    make_network,
    sharing_of,
)
from hackmatrix.agents.networks.policy import shapes_by_name
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.interface.environment import Environment, PyTree
from hackmatrix.environments.registry import environment_id
from hackmatrix.learning.run.compatibility import check_exported, check_shapes, check_symmetric
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer.batches import value_loss
from hackmatrix.learning.trainer.config import AlgorithmConfig
from hackmatrix.learning.trainer.keys import Purpose, key_for
from hackmatrix.learning.trainer.seeds import are_finite
from hackmatrix.research.datasets.folder import DataSet, environment_of
from hackmatrix.research.datasets.jax_replay import ReplayBatch, Replayer, data_environment
from hackmatrix.runs.other_names import params_of_name
from hackmatrix.runs.params import load_params

# --- A network learns from lessons: the teacher's probabilities and values ------------------------


Array = jax.Array

_LARGEST_NORM = 0.5  # of a gradient


class Lessons(NamedTuple):
    """B positions with a teacher's opinion."""

    observations: PyTree  # as the network reads them
    mask: Array  # uint32[B], the valid actions
    policy: Array  # float16[B, A], the teacher's probabilities
    value: Array  # float32[B], the return that the teacher expects of these probabilities


class Loss(NamedTuple):
    """Means over lessons."""

    divergence: Array  # KL divergence of the network's policy from the teacher's
    value: Array  # of the values, see `value_loss`


def learn(
    network: Network,
    params: PyTree,
    lessons: Lessons,
    *,
    lr: float,
    epochs: int,
    batch: int,
    seed: int,
) -> tuple[PyTree, Loss]:
    """Learns by Adam, with a learning rate that falls linearly to 0.

    Args:
        network: the network.
        params: its params.
        lessons: at least one batch.
        lr: learning rate at the start.
        epochs: passes over the lessons.
        batch: lessons of a step; those that are left over in an epoch are left out.
        seed: of their order.

    Returns:
        The new params, and the loss in the last epoch.

    Raises:
        UserError: the params became NaN or infinite.
    """
    sharing, count = sharing_of(network), len(lessons.mask)
    steps = count // batch
    adam = optax.chain(
        optax.clip_by_global_norm(_LARGEST_NORM),
        optax.adam(optax.linear_schedule(lr, 0, epochs * steps), eps=1e-5),
    )
    params = sharing.independent(params)
    state, rng = adam.init(params), np.random.default_rng(seed)
    losses = Loss(jnp.zeros(()), jnp.zeros(()))
    for _ in range(epochs):
        order = jnp.asarray(rng.permutation(count)[: steps * batch].reshape(steps, batch))
        params, state, losses = _epoch(network, adam, params, state, lessons, order)
    if not are_finite(params):
        raise UserError(f"--lr {lr:g}: the params became NaN or infinite; take a smaller one")
    return sharing.whole(params), losses


def loss(network: Network, params: PyTree, lessons: Lessons) -> Loss:
    """The network's distance from its teacher."""
    logits, values, _ = network(params, lessons.observations)
    mask = distribution.unpack_mask(lessons.mask, network.num_actions)
    log_probs = distribution.log_probabilities(logits, mask)
    divergence = distribution.divergence(lessons.policy.astype(jnp.float32), log_probs, mask)
    return Loss(jnp.mean(divergence), value_loss(network, values, lessons.value))


@partial(jax.jit, static_argnums=(0, 1))
def _epoch(
    network: Network,
    adam: optax.GradientTransformation,
    params: PyTree,
    state: optax.OptState,
    lessons: Lessons,
    order: Array,
) -> tuple[PyTree, optax.OptState, Loss]:
    def objective(params: PyTree, some: Lessons) -> tuple[Array, Loss]:
        parts = loss(network, sharing_of(network).whole(params), some)
        return parts.divergence + parts.value, parts

    def step(
        carry: tuple[PyTree, optax.OptState], indices: Array
    ) -> tuple[tuple[PyTree, optax.OptState], Loss]:
        params, state = carry
        some = jax.tree.map(lambda x: x[indices], lessons)
        gradient, parts = jax.grad(objective, has_aux=True)(params, some)
        changes, state = adam.update(gradient, state, params)
        return (optax.apply_updates(params, changes), state), parts

    (params, state), losses = jax.lax.scan(step, (params, state), order)
    return params, state, jax.tree.map(jnp.mean, losses)


# --- Behaviour cloning: a network learns the actions and the returns of recorded games ------------


_GAMES_AT_ONCE = 256  # games that are replayed at once
_HELD_OUT = 20  # of so many games one is not learned from
_AT_ONCE = 4096  # held-out positions


class ClonePlan(NamedTuple):
    """Settings of supervised learning."""

    positions: int  # at most, of whole games from the first one on
    lr: float
    epochs: int
    batch: int
    seed: int


class Cloned(NamedTuple):
    """A network that has learned from games, and how well it does in those held out."""

    params: PyTree
    games: int
    positions: int  # learned from
    cross_entropy: float  # of the recorded actions, in nats
    agreement: float  # share of positions where the recorded action is the most probable
    value_error: float  # root mean square
    returns: float  # standard deviation of what the values are compared with


def clone(data: DataSet, config: TrainConfig, plan: ClonePlan) -> Cloned:
    """Learns the games of a data set with the network of a run.

    The values are learned from the discounted returns of the run's reward, scaled as the run
    scales rewards: PPO starts with a critic that knows the recorded player's returns.

    Raises:
        UserError: the run's environment or network does not fit the data, or the params became
            NaN.
        DamagedError: the data set is damaged.
    """
    env, network = _make(data, config)
    learned, held_out, games = _lessons(data, env, network, config.learning, plan)
    if not min(len(learned.mask), len(held_out.mask)):
        raise UserError(
            f"{data.path}: its first {games} games, of {plan.positions:,} positions at most, are "
            "too few: one is held out"
        )
    params, _ = learn(
        network,
        _first_params(network, config, plan.seed),
        learned,
        lr=plan.lr,
        epochs=plan.epochs,
        batch=min(plan.batch, len(learned.mask)),
        seed=plan.seed,
    )
    cross_entropy, agreement, error = _evaluate(network, params, held_out)
    return Cloned(
        jax.device_get(params),
        games,
        len(learned.mask),
        cross_entropy,
        agreement,
        error,
        float(np.std(held_out.value)),
    )


def _first_params(network: Network, config: TrainConfig, seed: int) -> PyTree:
    """New params, or those of the run's `init_from`.

    The value of the latter may be of another kind: it is learned, too.
    """
    params = jax.jit(network.init)(key_for(seed, Purpose.PARAMS))
    if (path := config.run.init_from) is None:
        return params
    exported = load_params(params_of_name(path))
    check_exported(exported, config, any_value=True)
    check_shapes(shapes_by_name(exported.params), shapes_by_name(params), path)
    check_symmetric(network, exported.params, path)
    return jax.tree.map(lambda like, x: jnp.asarray(x, like.dtype), params, exported.params)


def _make(data: DataSet, config: TrainConfig) -> tuple[Environment, Network]:
    environment = config.environment
    name = environment_id(environment.env)
    if environment.multi_task:  # each task's rewards have a scale of their own
        raise UserError("multi_task: games of several tasks can't be cloned")
    environment_of(data, environment.env)
    if config.network.recurrent:
        raise UserError(
            f"{config.network.architecture} has a memory: it can't learn single positions"
        )
    if config.learning.normalize_observations:
        raise UserError("normalize_observations: cloned params read observations as they are")
    options: dict[str, Any] = {}
    if name == ENVIRONMENT_ID:
        names = ("reward", "win_worth", "program_worth")
        options = {name: getattr(environment, name) for name in names}
        options["layout"] = environment.observation
    env = data_environment(name, **options)
    return env, make_network(env, config.network)


def _lessons(
    data: DataSet, env: Environment, network: Network, config: AlgorithmConfig, plan: ClonePlan
) -> tuple[Lessons, Lessons, int]:
    """The lessons to learn from, those held out, and the number of games."""

    def look(observations: PyTree, masks: Array) -> PyTree:
        return encode_observations(network, observations), distribution.pack_mask(masks)

    replayer = Replayer(env, data.facts.seed, min(_GAMES_AT_ONCE, data.facts.games), look)
    parts: tuple[list[Any], list[Any]] = [], []
    squares = steps = games = 0.0
    for shard in data.first(data.facts.games, plan.positions):
        games += len(shard.lengths)
        for batch in replayer.playable_batches(shard, data.path):
            returns, so_far = _discount(batch, config.gamma)
            squares += float(np.sum(so_far**2, where=batch.within))
            steps += int(batch.lengths.sum())
            is_held_out = (shard.first + batch.games) % _HELD_OUT == 0
            for chosen, kept in zip((~is_held_out, is_held_out), parts, strict=True):
                kept.append(_lessons_of(batch, returns, batch.within & chosen, env.num_actions))
    scale = np.sqrt(squares / steps) if config.normalize_rewards and squares else 1.0
    learned, held_out = (jax.tree.map(lambda *x: np.concatenate(x), *part) for part in parts)
    return _scale_values(learned, scale), _scale_values(held_out, scale), int(games)


def _scale_values(lessons: Lessons, scale: float) -> Lessons:
    return lessons._replace(value=(lessons.value / scale).astype(np.float32))


def _discount(batch: ReplayBatch, gamma: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Float64[T, N]: the discounted rewards after and up to each action of a game."""
    rewards = np.where(batch.within, batch.rewards, 0).astype(np.float64)
    returns, so_far = np.zeros_like(rewards), np.zeros_like(rewards)
    after = before = np.zeros(rewards.shape[1])
    for time in range(len(rewards)):
        before = so_far[time] = rewards[time] + gamma * before
    for time in reversed(range(len(rewards))):
        after = returns[time] = rewards[time] + gamma * after
    return returns, so_far


def _lessons_of(
    batch: ReplayBatch, returns: NDArray[Any], chosen: NDArray[np.bool_], num_actions: int
) -> Lessons:
    """The positions of a batch at which `chosen` bool[T, N] is set."""
    observations, masks = jax.tree.map(lambda x: x[chosen], batch.observed)
    policy: Any = np.eye(num_actions, dtype=np.float16)[batch.actions[chosen]]
    value: Any = returns[chosen].astype(np.float32)
    return Lessons(observations, masks, policy, value)


def _evaluate(network: Network, params: PyTree, lessons: Lessons) -> tuple[float, float, float]:
    """Cross-entropy, agreement and the root mean square error of the values."""

    @jax.jit
    def judge(params: PyTree, some: Lessons) -> tuple[Array, Array, Array]:
        parts = loss(network, params, some)
        logits, values, _ = network(params, some.observations)
        mask = distribution.unpack_mask(some.mask, network.num_actions)
        best = distribution.most_probable(logits, mask)
        agreed = jnp.mean(best == jnp.argmax(some.policy, axis=1))
        return parts.divergence, agreed, jnp.mean((values - some.value) ** 2)

    count = len(lessons.mask)
    sums = np.zeros(3)
    for start in range(0, count, _AT_ONCE):
        some = jax.tree.map(lambda x: x[start : start + _AT_ONCE], lessons)  # noqa: B023
        sums += len(some.mask) * np.array(judge(params, some))
    cross_entropy, agreement, squares = sums / count
    return float(cross_entropy), float(agreement), float(np.sqrt(squares))
