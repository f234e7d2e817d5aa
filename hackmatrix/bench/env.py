"""Environment steps per second under random valid actions."""

import statistics
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import hackmatrix
from hackmatrix.jaxgame import EnvState, HackMatrixEnv


class Speed(NamedTuple):
    """What was measured."""

    compile_seconds: float  # tracing, compiling and the first call
    rates: list[float]  # steps/s of each repeat
    mean_episode_length: float
    mean_enemies: float  # on a board
    mean_stage: float

    def as_dict(self, num_envs: int) -> dict[str, Any]:
        """For `--json`."""
        median = statistics.median(self.rates)
        return {
            "steps_per_second": median,
            "num_envs": num_envs,
            "repeats": len(self.rates),
            "median": median,
            "min": min(self.rates),
            "max": max(self.rates),
            "compile_seconds": self.compile_seconds,
            "mean_episode_length": self.mean_episode_length,
            "mean_enemies": self.mean_enemies,
            "mean_stage": self.mean_stage,
            "device": jax.devices()[0].device_kind,
            "versions": {"hackmatrix": hackmatrix.__version__, "jax": jax.__version__},
        }


def measure(num_envs: int, num_steps: int, repeats: int) -> Speed:
    """Time `repeats` runs of `num_steps` steps of `num_envs` games, after one that compiles.

    Observations, masks, reward parts and auto-reset are part of every step; the timed function
    returns sums over all of them.
    """
    env = hackmatrix.make()
    _, state = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), num_envs))
    run = jax.jit(lambda state, key: _run(env, state, key, num_steps), donate_argnums=0)

    def timed(state: EnvState, number: int) -> tuple[EnvState, dict[str, jax.Array], float]:
        start = time.perf_counter()
        state, sums = jax.block_until_ready(run(state, jax.random.key(number)))
        return state, sums, time.perf_counter() - start

    state, _, compile_seconds = timed(state, 0)
    rates, totals = [], []
    for number in range(1, repeats + 1):
        state, sums, seconds = timed(state, number)
        rates.append(num_envs * num_steps / seconds)
        totals.append(jax.tree.map(float, sums))
    steps = repeats * num_envs * num_steps
    episodes = max(sum(total["episodes"] for total in totals), 1)
    return Speed(
        compile_seconds,
        rates,
        mean_episode_length=steps / episodes,
        mean_enemies=sum(total["enemies"] for total in totals) / steps,
        mean_stage=sum(total["stage"] for total in totals) / steps,
    )


def _run(
    env: HackMatrixEnv, state: EnvState, key: jax.Array, num_steps: int
) -> tuple[EnvState, dict[str, jax.Array]]:
    def one(state: EnvState, key: jax.Array) -> tuple[EnvState, dict[str, jax.Array]]:
        mask = jax.vmap(env.action_mask)(state)
        noise = jax.random.uniform(key, mask.shape)
        action = jnp.argmax(jnp.where(mask, noise, -1), axis=1)
        step = jax.vmap(env.step, in_axes=(None, 0, 0))
        observation, state, reward, terminated, truncated, info = step(None, state, action)
        sums = {
            "observations": jnp.sum(observation, dtype=jnp.float32),
            "masks": jnp.sum(mask, dtype=jnp.float32),
            "rewards": jnp.sum(reward),
            "parts": jnp.sum(info["reward_parts"]),
            "episodes": jnp.sum(terminated | truncated, dtype=jnp.float32),
            "enemies": jnp.sum(state.game.enemies.count, dtype=jnp.float32),
            "stage": jnp.sum(info["stage"], dtype=jnp.float32),
        }
        return state, sums

    state, sums = jax.lax.scan(one, state, jax.random.split(key, num_steps))
    return state, jax.tree.map(lambda x: jnp.sum(x, axis=0), sums)
