"""A program of somebody else that uses the package in each of its ways; prints what came out.

`python host_program.py FOLDER WAY...`; with HOST_THREAD set all of it runs outside the main thread.
Each line is a way, a number and a checksum, which must not depend on the settings of JAX.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

import hackmatrix
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.environments.curriculum.levels import Curriculum
from hackmatrix.environments.wrappers import FloatObservations, LogEpisodes
from hackmatrix.runs.metrics_file import read_metrics

STRICT = {
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "JAX_TRANSFER_GUARD": "disallow",
}
SMALL = {
    "num_envs": 4,
    "num_steps": 8,
    "total_timesteps": 64,
    "hidden_dim": 8,
    "num_layers": 1,
    "log_interval": 1,
    "tensorboard": False,
    "wandb": False,
}


def key_of(seed: int) -> Any:
    """A random key, under a guard of transfers too."""
    return jax.jit(lambda: jax.random.key(seed))()


def action_of(mask: Any, number: Any) -> Any:
    """A valid action; with 64 bits an int64."""
    return (jnp.argmax(jnp.roll(mask, -number)) + number.astype(int)) % mask.size


def played(env: Any) -> Iterator[Any]:
    """Four games side by side, in a loop of the host's own."""
    keys = jax.vmap(jax.random.key)(jax.device_put(np.arange(4, dtype=np.uint32)))

    @jax.jit
    def play(keys: Any) -> Any:
        def step(carry: Any, number: Any) -> Any:
            _, state = carry
            masks = jax.vmap(env.action_mask)(state)
            actions = jax.vmap(action_of, (0, None))(masks, number)
            observation, state, *results = jax.vmap(env.step)(keys, state, actions)
            return (observation, state), (actions.astype(jnp.int32), results)

        return jax.lax.scan(step, jax.vmap(env.reset)(keys), jnp.arange(12, dtype=jnp.int32))

    yield play(keys)


def environments() -> Iterator[Any]:
    yield from played(hackmatrix.make())
    yield from played(LogEpisodes(FloatObservations(hackmatrix.make(layout="tactical"))))
    for engine in ("native", "jax"):
        env = hackmatrix.make(engine=engine)
        observation, state = env.reset(key_of(5))
        yield observation, env.action_mask(state), env.features(observation)
    yield hackmatrix.make().step(None, hackmatrix.make().reset(key_of(5))[1], jax.device_put(0))


def agents() -> Iterator[Any]:
    agent = hackmatrix.load_agent()
    params = jax.device_put(agent.params)
    env = hackmatrix.make(observation=agent.observation)
    key = key_of(5)
    observation, state = env.reset(key)
    yield jax.jit(agent)(params, observation, env.action_mask(state), key)
    env, network = agent.make()
    seen = network.encode(jax.tree.map(lambda x: x[None], env.reset(key)[0]))
    yield network(params, seen)[:2]


def evaluations() -> Iterator[Any]:
    for agent in ("shipped", "random", _first):
        report = hackmatrix.evaluate(agent, episodes=3, max_steps=60)
        yield np.array([report.wins.mean, report.stages.mean, report.score.mean])


def _first(params: Any, observation: Any, mask: Any, key: Any) -> Any:
    del params, observation, key
    return jnp.argmax(mask)


def trained(env: str, **settings: Any) -> Iterator[Any]:
    """Params and losses of a short training."""
    run = hackmatrix.train(env, **SMALL, **settings, checkpoint_dir=sys.argv[1]).run
    yield [load_policy(path).params for path in sorted(run.rglob("*_params.npz"))]
    rows = [dict(row) for row in read_metrics(run)]
    yield [row[name] for row in rows for name in sorted(row) if name.endswith("_loss")]


def training() -> Iterator[Any]:
    plain = {"architecture": "mlp", "observation": "tactical", "normalize_observations": True}
    evaluated = {"eval_interval": 1, "eval_episodes": 2}
    yield from trained("HackMatrix-v1", config="original", **plain, **evaluated)


def more_trainings() -> Iterator[Any]:
    yield from trained("HackMatrix-v1")  # with the settings of "best"
    yield from trained("HackMatrix-v1", config="original", curriculum=Curriculum.of("programs"))
    yield from trained("frog:Frog", architecture="gru")
    yield from trained("frog:Frog", algorithm="pqn")
    yield from trained("CartPole-v1", algorithm="expert_iteration", simulations=2)
    yield from trained("frog:Frog+HackMatrix-v1")


def clients() -> Iterator[Any]:
    env = gymnasium.make("HackMatrix-v1", backend="jax", observation="compact")
    observation, info = env.reset(seed=3)
    yield observation, env.step(int(np.flatnonzero(info["action_mask"])[0]))[:2]


WAYS: dict[str, Callable[[], Iterator[Any]]] = {
    way.__name__: way
    for way in (
        *(environments, agents, evaluations, training, clients),
        more_trainings,
    )
}


def checksum(tree: Any) -> str:
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        array = np.asarray(jax.device_get(leaf))
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def main() -> None:
    for name in sys.argv[2:]:
        for number, result in enumerate(WAYS[name]()):
            print(name, number, checksum(result), flush=True)


if __name__ == "__main__":
    if "HOST_THREAD" in os.environ:
        with ThreadPoolExecutor(1) as thread:
            thread.submit(main).result()
    else:
        main()
