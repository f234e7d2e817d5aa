"""The time of each part of a training update, compiled separately and given the same rollout."""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

import hackmatrix
from benchmarks.command import run_command
from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.core import machine
from hackmatrix.core.devices import mesh
from hackmatrix.core.devices.mesh import REPLICATED
from hackmatrix.core.options import option
from hackmatrix.environments.interface.environment import PyTree
from hackmatrix.learning.ppo import update as ppo
from hackmatrix.learning.ppo.keys import Purpose, UpdateKeys
from hackmatrix.learning.ppo.minibatches import Shares, minibatch_indices
from hackmatrix.learning.ppo.rollout import Games, Rollout, Transition, play
from hackmatrix.learning.ppo.trainer import Trainer, TrainState
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.research.bench.options import UpdateOptions, train_config

Array = jax.Array

PARTS = {
    "rollout": "rollout",
    "environment": "  steps of the environment",
    "policy": "  choosing actions",
    "advantages": "advantages",
    "epochs": "epochs",
    "minibatches": "  shuffling and gathering",
    "features": "  features",
    "gradients": "  gradients, features included",
    "optimizer": "  optimizer",
}


@dataclass(frozen=True)
class PartsOptions(UpdateOptions):
    """The options of the command."""

    repeats: int = option(3, "timed repeats of each part, in turn", at_least=1)


class Parts(NamedTuple):
    """Seconds of each part in an update."""

    config: TrainConfig
    seconds: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "num_envs": self.config.num_envs,
            "num_steps": self.config.num_steps,
            "seconds": self.seconds,
            **machine.machine(),
            "versions": machine.versions(),
        }

    def text(self) -> str:
        """The figures as a table."""
        it = self.as_dict()
        lines = [
            f"milliseconds in an update of {it['num_envs']} x {it['num_steps']} transitions, each "
            "part compiled by itself:",
            *(f"{line:32}{self.seconds[part] * 1e3:9,.0f}" for part, line in PARTS.items()),
        ]
        return "\n".join([*lines, machine.line(it, it["versions"])])


def measure(options: PartsOptions) -> Parts:
    """Times the parts of an update, after one update."""
    config = train_config(options)
    trainer = Trainer(hackmatrix.make(observation=config.observation), config)
    state = trainer.run(trainer.init(config.seed), 1)
    return Parts(config, seconds_of_parts(trainer, state, options.repeats))


def seconds_of_parts(trainer: Trainer, state: TrainState, repeats: int) -> dict[str, float]:
    """Median seconds of each of `PARTS` in an update, measured in turn.

    The subparts of a part need not add up to it: it has other work too, and XLA may fuse them.
    """
    parts = _Parts(trainer, state)
    rollout = jax.jit(parts.rollout)(state.params, state.games)[1]
    batch = jax.jit(parts.advantages)(rollout)
    once, epochs = 1, trainer.config.update_epochs
    work: dict[str, tuple[int, Callable[..., Any], tuple[Any, ...]]] = {
        "rollout": (once, parts.rollout, (state.params, state.games)),
        "environment": (once, parts.environment, (state.games.env_state, rollout.steps.action)),
        "policy": (once, parts.policy, (state.params, rollout.steps)),
        "advantages": (once, parts.advantages, (rollout,)),
        "epochs": (once, parts.epochs, (state.params, state.opt_state, batch)),
        "minibatches": (epochs, parts.minibatches, (batch,)),
        "features": (epochs, parts.features, (batch,)),
        "gradients": (epochs, parts.gradients, (state.params, batch)),
        "optimizer": (epochs, parts.optimizer, (state.params, state.opt_state)),
    }
    compiled = {
        name: (times, mesh.on_devices(part, trainer.mesh, REPLICATED, REPLICATED), args)
        for name, (times, part, args) in work.items()
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for repeat in range(1 + repeats):
        for name, (times, part, args) in compiled.items():
            start = time.perf_counter()
            jax.block_until_ready(part(*args))
            if repeat:  # the first call compiles
                seconds[name].append(times * (time.perf_counter() - start))
    return {name: statistics.median(each) for name, each in seconds.items()}


class _Parts:
    """The parts as functions of arrays. Each returns all its results, so that XLA skips none.

    The parts of the epochs run one epoch, with minibatches in the rollout's order.
    """

    def __init__(self, trainer: Trainer, state: TrainState) -> None:
        self._task = trainer.task
        self._env, self._network, self._config, _ = trainer.task
        assert isinstance(self._network, FeatureNetwork)
        self._features = self._network.features
        self._keys = UpdateKeys(state.seed, state.update)
        self._deviation = state.reward_scale.deviation

    def rollout(self, params: PyTree, games: Games) -> tuple[Games, Rollout]:
        return play(self._task, params, games, self._keys, jnp.arange(self._config.num_envs))

    def environment(self, env_state: PyTree, actions: Array) -> Any:
        """Repeats the rollout's actions [num_steps, num_envs]."""

        def step(env_state: PyTree, action: Array) -> tuple[PyTree, Any]:
            mask = jax.vmap(self._env.action_mask)(env_state)
            keys = self._keys.many(Purpose.ENVIRONMENT, each=jnp.arange(action.size))
            obs, env_state, *rest, _ = jax.vmap(self._env.step)(keys, env_state, action)
            return env_state, (obs, mask, rest)

        return jax.lax.scan(step, env_state, actions)

    def policy(self, params: PyTree, steps: Transition) -> Any:
        """Chooses actions again for the rollout's observations [num_steps, num_envs]."""

        def choose(_: None, step: Transition) -> Any:
            logits, value, _ = self._network(params, step.obs)
            mask = distribution.unpack_mask(step.mask, self._network.num_actions)
            log_probs = distribution.log_probabilities(logits, mask)
            noise = self._keys.many(Purpose.ACTION, each=jnp.arange(value.size))
            action = distribution.sample(log_probs, mask, jax.vmap(jax.random.uniform)(noise))
            return None, (action, distribution.log_probability(log_probs, action), value)

        return jax.lax.scan(choose, None, steps)

    def advantages(self, rollout: Rollout) -> ppo.Batch:
        return ppo.batch_of(rollout, self._deviation, self._config)

    def epochs(self, params: PyTree, opt_state: PyTree, batch: ppo.Batch) -> Any:
        weights = ppo.Weights(params, opt_state)
        coefficients = ppo.Coefficients(jnp.float32(self._config.lr), self._config.ent_coef)
        return ppo.learn(self._task, weights, batch, self._keys, coefficients)

    def minibatches(self, batch: ppo.Batch) -> ppo.Batch:
        shares = Shares.of(self._config, self._config.num_envs, recurrent=False)
        indices = minibatch_indices(self._keys, jnp.int32(0), shares, jnp.int32(0))
        return self._last_of(lambda i: jax.tree.map(lambda x: x[i], batch), indices)

    def features(self, batch: ppo.Batch) -> Any:
        return self._last_of(self._features, self._in_order(batch.samples.obs))

    def gradients(self, params: PyTree, batch: ppo.Batch) -> PyTree:
        def gradient(minibatch: ppo.Batch) -> PyTree:
            return jax.grad(ppo.loss, has_aux=True)(
                params,
                minibatch,
                network=self._network,
                config=self._config,
                ent_coef=self._config.ent_coef,
            )[0]

        return self._last_of(gradient, self._in_order(batch))

    def optimizer(self, params: PyTree, opt_state: PyTree) -> PyTree:
        adam = ppo.optimizer(self._config)

        def step(carry: tuple[PyTree, PyTree], _: None) -> tuple[PyTree, None]:
            params, opt_state = carry  # the params serve as their own gradient
            updates, opt_state = adam.update(params, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), None

        return jax.lax.scan(step, (params, opt_state), None, length=self._config.num_minibatches)

    def _in_order(self, batch: PyTree) -> PyTree:
        """Splits [batch, ...] into [minibatches, batch / minibatches, ...], in order."""
        count = self._config.num_minibatches
        return jax.tree.map(lambda x: x.reshape(count, -1, *x.shape[1:]), batch)

    @staticmethod
    def _last_of(make: Callable[[Any], PyTree], inputs: PyTree) -> PyTree:
        """Applies `make` to each input; as the results are the carry, XLA must compute them all."""
        first = jax.tree.map(lambda x: x[0], inputs)
        start = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(make, first))
        return jax.lax.scan(lambda _, each: (make(each), None), start, inputs)[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "update_parts",
        measure,
        PartsOptions,
        argv,
        purpose="Measures the time of each part of a training update.",
        example="--num-envs 256 --epochs 4\n      of a batch of 256 x 128 transitions",
    )


if __name__ == "__main__":
    sys.exit(main())
