"""Playing many games for some steps, and what is kept of them for learning."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from hackmatrix.agents import distribution
from hackmatrix.agents.agent import Agent
from hackmatrix.interface.environment import Environment, PyTree
from hackmatrix.learner import measures
from hackmatrix.learner.keys import Purpose, keys_for
from hackmatrix.rules.actions import NUM_ACTIONS

Array = jax.Array


class Games(struct.PyTreeNode):
    """N games under way; every array has the leading axis N."""

    env_state: PyTree
    obs: PyTree  # the compact observation that the next action answers
    episode_return: Array  # float32[N], rewards of the episode so far
    episode_length: Array  # int32[N], its steps so far
    discounted_return: Array  # float32[N], as episode_return, older rewards discounted


class Transition(struct.PyTreeNode):
    """One step; in a rollout every array has the leading axes [T, N].

    `obs`, `mask`, `log_prob` and `value` belong to the moment *before* the step, when `action` was
    chosen; the other fields to what came of it.
    """

    obs: PyTree
    mask: Array  # uint32, the valid actions as bits
    action: Array  # uint8
    log_prob: Array  # float32
    value: Array  # float32, in units of scaled rewards
    reward: Array  # float32, not scaled
    terminated: Array  # bool
    truncated: Array  # bool
    final_value: Array  # float32, value of the final observation where truncated, else 0


class Rollout(struct.PyTreeNode):
    """T steps of N games, and the sums that need not be kept step by step."""

    steps: Transition
    last_value: Array  # float32[N], of the observation after the last step
    sum_of_squares: Array  # float32[], of the discounted returns of all steps
    measures: measures.Measures


def new_games(env: Environment, seed: Array, update: Array, numbers: Array) -> Games:
    """Starts the games with these numbers int32[N] before the given update of a run."""
    keys = keys_for(seed, Purpose.RESET, update, each=numbers)
    obs, env_state = jax.vmap(env.reset)(keys)
    # A Python number in a state is of no type until the first step: then all would compile anew.
    obs, env_state = jax.tree.map(
        lambda x: jax.lax.convert_element_type(x, x.dtype), (obs, env_state)
    )
    num_envs = numbers.size
    return Games(
        env_state=env_state,
        obs=obs,
        episode_return=jnp.zeros(num_envs),
        episode_length=jnp.zeros(num_envs, jnp.int32),
        discounted_return=jnp.zeros(num_envs),
    )


def play(
    env: Environment,
    agent: Agent,
    params: PyTree,
    games: Games,
    seed: Array,
    update: Array,
    *,
    numbers: Array,
    num_steps: int,
    gamma: float,
) -> tuple[Games, Rollout]:
    """Plays `num_steps` in the games `numbers` int32[N].

    Noise follows from (seed, update, step, game's number).
    """

    def step(games: Games, t: Array) -> tuple[Games, _Step]:
        noise = keys_for(seed, Purpose.ACTION, update, t, each=numbers)
        env_noise = keys_for(seed, Purpose.ENVIRONMENT, update, t, each=numbers)
        return _step(env, agent, params, games, noise, env_noise, gamma)

    games, steps = jax.lax.scan(step, games, jnp.arange(num_steps))
    measured = measures.over_time(steps.measures)
    if "reward/step_penalty" in measured and env.num_actions == NUM_ACTIONS:  # it is HackMatrix
        taken = steps.transition
        measured |= measures.of_actions(
            taken.action, taken.mask, taken.terminated | taken.truncated
        )
    _, last_value = agent(params, games.obs)
    return games, Rollout(
        steps=steps.transition,
        last_value=last_value,
        sum_of_squares=jnp.sum(steps.sum_of_squares),
        measures=measured,
    )


class _Step(NamedTuple):
    """One step of N games: what is kept of it, and its sums."""

    transition: Transition
    sum_of_squares: Array
    measures: measures.Measures


def _step(
    env: Environment,
    agent: Agent,
    params: PyTree,
    games: Games,
    noise: Array,
    env_noise: Array,
    gamma: float,
) -> tuple[Games, _Step]:
    logits, value = agent(params, games.obs)
    mask = jax.vmap(env.action_mask)(games.env_state)
    log_probs = distribution.log_probabilities(logits, mask)
    action = distribution.sample(log_probs, mask, jax.vmap(jax.random.uniform)(noise))
    obs, env_state, reward, terminated, truncated, info = jax.vmap(env.step)(
        env_noise, games.env_state, action
    )
    ended = terminated | truncated
    returns = games.episode_return + reward
    lengths = games.episode_length + 1
    discounted = gamma * games.discounted_return + reward
    after = Games(
        env_state=env_state,
        obs=obs,
        episode_return=jnp.where(ended, 0.0, returns),
        episode_length=jnp.where(ended, 0, lengths),
        discounted_return=jnp.where(ended, 0.0, discounted),
    )
    transition = Transition(
        obs=games.obs,
        mask=distribution.pack_mask(mask),
        action=action.astype(jnp.uint8),
        log_prob=distribution.log_probability(log_probs, action),
        value=value,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        final_value=_final_values(
            env, lambda: agent(params, info["final_observation"])[1], truncated & ~terminated
        ),
    )
    measured = measures.of_step(reward, ended, returns, lengths, info)
    return after, _Step(transition, jnp.sum(discounted**2), measured)


def _final_values(env: Environment, values: Callable[[], Array], wanted: Array) -> Array:
    """float32[N], `values()` where wanted, else 0; they are computed only if any is wanted."""
    zeros = jnp.zeros(wanted.shape)
    if getattr(env, "max_episode_steps", 0) is None:  # never truncates
        return zeros
    return jax.lax.cond(jnp.any(wanted), lambda: jnp.where(wanted, values(), zeros), lambda: zeros)
