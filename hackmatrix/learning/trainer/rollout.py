"""Rollouts: plays many games for some steps and records what learning needs."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.network import encode_observations, reset_carry
from hackmatrix.environments.interface.environment import (
    Environment,
    PyTree,
    StepRecord,
    optional_members,
)
from hackmatrix.learning.trainer import measures
from hackmatrix.learning.trainer.algorithm import (
    Algorithm,
    Hyperparameters,
    InformationState,
    PolicyOutput,
    Setup,
)
from hackmatrix.learning.trainer.keys import Purpose, UpdateKeys
from hackmatrix.learning.trainer.tasks import sum_over_games, tasks_of

Array = jax.Array


class RolloutCarry(struct.PyTreeNode):
    """State of N games between two steps; every array has the leading axis N."""

    env_state: PyTree
    obs: PyTree  # the observation on which the next action is based, as the network reads it
    carry: PyTree  # the network's, before it sees `obs`; not yet reset where `starts`
    previous_mask: Array  # uint32[N], actions that were valid before the last step; 0 at starts
    episode_return: Array  # float32[N], sum of the episode's rewards so far
    episode_length: Array  # int32[N], number of its steps so far
    discounted_return: Array  # float32[N], the same sum with older rewards discounted
    information: InformationState | None  # for an algorithm that searches

    @property
    def starts(self) -> Array:
        """bool[N], whether the next step is the first of its episode."""
        return self.episode_length == 0


class Transition(struct.PyTreeNode):
    """One step; in a rollout every array has the leading axes [T, N].

    `obs`, `starts`, `mask`, `stored` and `value` are from *before* the step, when `action` was
    chosen; the other fields are its results.
    """

    obs: PyTree  # as the network reads it
    mask: Array  # uint32, the valid actions as bits
    action: Array  # uint8
    stored: dict[str, Array]  # float32 by name, what the algorithm keeps of its choice
    value: Array  # float32, in units of scaled rewards
    reward: Array  # float32, as the environment pays; the trainer scales it before an update
    terminated: Array  # bool
    truncated: Array  # bool
    final_value: Array  # float32, value of the final observation where truncated, else 0
    starts: Array | None  # bool, whether the step begins an episode; None if not recurrent


class Rollout(struct.PyTreeNode):
    """T steps of N games, and sums over them."""

    steps: Transition
    first_carry: PyTree  # of the network before the first step, leading axis N
    last_value: Array  # float32[N], of the observation after the last step
    sum_of_squares: Array  # float32[] or [K], of the discounted returns of all steps
    measures: Array  # float32[M, 2], see `measures.py`
    tasks: Array | None = None  # float32[N, K], see `tasks.py`


def new_games(setup: Setup, keys: UpdateKeys, indices: Array) -> RolloutCarry:
    """Resets the games with these indices, int32[N]; `keys` are those of the next update."""
    reset_keys = keys.many(Purpose.RESET, indices=indices)
    tasks, reset_task = tasks_of(setup.env, indices), optional_members(setup.env).reset_task
    if tasks is None or reset_task is None:
        obs, env_state = jax.vmap(setup.env.reset)(reset_keys)
    else:
        obs, env_state = jax.vmap(reset_task)(reset_keys, jnp.argmax(tasks, axis=1))
    # A Python number in a state is weakly typed until the first step; the change of type would make
    # everything compile again.
    obs, env_state = jax.tree.map(
        lambda x: jax.lax.convert_element_type(x, x.dtype), (obs, env_state)
    )
    num_envs = indices.size
    return RolloutCarry(
        env_state=env_state,
        obs=encode_observations(setup.network, obs),
        carry=setup.network.initial_carry(num_envs),
        previous_mask=jnp.zeros(num_envs, jnp.uint32),
        episode_return=jnp.zeros(num_envs),
        episode_length=jnp.zeros(num_envs, jnp.int32),
        discounted_return=jnp.zeros(num_envs),
        information=_remember(setup, None, obs),
    )


def play(
    setup: Setup,
    algorithm: Algorithm,
    params: PyTree,
    games: RolloutCarry,
    keys: UpdateKeys,
    indices: Array,
    hyper: Hyperparameters,
) -> tuple[RolloutCarry, Rollout]:
    """Plays `num_steps` steps in the games with these indices, int32[N].

    The randomness of a step depends only on the keys, the step and the game's number. `hyper.gamma`
    discounts the returns by which rewards are scaled.
    """
    tasks = tasks_of(setup.env, indices)

    def step(games: RolloutCarry, t: Array) -> tuple[RolloutCarry, _Step]:
        def keys_of(purpose: Purpose) -> Array:
            return keys.many(purpose, t, indices=indices)

        return _step(setup, algorithm, params, games, tasks, hyper, keys.update, keys_of)

    first_carry = games.carry
    games, steps = jax.lax.scan(step, games, jnp.arange(setup.config.num_steps))
    carry = reset_carry(setup.network, games.carry, games.starts)
    _, last_value, _ = setup.network(params, games.obs, carry)
    return games, Rollout(
        steps=steps.transition,
        first_carry=first_carry,
        last_value=last_value,
        sum_of_squares=jnp.sum(steps.sum_of_squares, axis=0),
        measures=measures.over_time(steps.measures, measures.metrics_of(setup.env, algorithm)),
        tasks=tasks,
    )


def _remember(
    setup: Setup, before: InformationState | None, observations: PyTree
) -> InformationState | None:
    """The players' knowledge after their next observations; `before` is None at the start."""
    if not setup.searches:
        return None
    imagination, num_envs = setup.imagination, len(jax.tree.leaves(observations)[0])
    memory = imagination.begin(num_envs) if before is None else before.memory
    return InformationState(observations, imagination.after(memory, observations))


class _Step(NamedTuple):
    """Results of one step of N games: the transition and sums over the games."""

    transition: Transition
    sum_of_squares: Array
    measures: Array


def _step(
    setup: Setup,
    algorithm: Algorithm,
    params: PyTree,
    games: RolloutCarry,
    tasks: Array | None,
    hyper: Hyperparameters,
    update: Array,
    keys_of: Callable[[Purpose], Array],
) -> tuple[RolloutCarry, _Step]:
    env, network = setup.env, setup.network
    logits, value, carry = network(
        params, games.obs, reset_carry(network, games.carry, games.starts)
    )
    mask = jax.vmap(env.action_mask)(games.env_state)
    uniform = jax.vmap(jax.random.uniform)(keys_of(Purpose.ACTION))
    seeds = jax.vmap(jax.random.bits)(keys_of(Purpose.SEARCH))
    position = PolicyOutput(logits, value, mask, uniform, games.information, seeds)
    action, stored = algorithm.choose(params, position, hyper, update)
    obs, env_state, reward, terminated, truncated, info = jax.vmap(env.step)(
        keys_of(Purpose.ENVIRONMENT), games.env_state, action
    )
    if setup.config.final_shaping is not None and "shaping" in info:
        reward += (hyper.shaping(update) - 1) * info["shaping"]
    ended = terminated | truncated
    returns = games.episode_return + reward
    lengths = games.episode_length + 1
    discounted = hyper.gamma * games.discounted_return + reward
    packed_mask = distribution.pack_mask(mask)
    after = RolloutCarry(
        env_state=env_state,
        obs=encode_observations(network, obs),
        carry=carry,
        previous_mask=jnp.where(ended, jnp.uint32(0), packed_mask),
        episode_return=jnp.where(ended, 0.0, returns),
        episode_length=jnp.where(ended, 0, lengths),
        discounted_return=jnp.where(ended, 0.0, discounted),
        information=_remember(setup, games.information, obs),
    )
    transition = Transition(
        obs=games.obs,
        mask=packed_mask,
        action=action.astype(jnp.uint8),
        stored=stored,
        value=value,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        final_value=_final_values(
            env,
            lambda: network(params, encode_observations(network, info["final_observation"]), carry)[
                1
            ],
            truncated & ~terminated,
        ),
        starts=games.starts if network.recurrent else None,
    )
    record = StepRecord(
        action=action,
        mask=mask,
        previous_mask=distribution.unpack_mask(games.previous_mask, env.num_actions),
        reward=reward,
        ended=ended,
        info=info,
    )
    measured = measures.rows(
        measures.of_step(env, record, returns, lengths),
        measures.metrics_of(env, algorithm),
    )
    return after, _Step(transition, sum_over_games(discounted**2, tasks), measured)


def _final_values(env: Environment, values: Callable[[], Array], wanted: Array) -> Array:
    """`values()` where `wanted`, else 0, float32[N]; they are computed only if any is wanted."""
    zeros = jnp.zeros(wanted.shape)
    if optional_members(env).never_truncates:
        return zeros
    return jax.lax.cond(jnp.any(wanted), lambda: jnp.where(wanted, values(), zeros), lambda: zeros)
