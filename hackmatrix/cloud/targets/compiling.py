"""Compiles the programs of a training for a target, and reads their size from what comes out."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr
from jax.sharding import PartitionSpec
from jax.stages import Traced

from hackmatrix.cloud.targets import hlo, loops
from hackmatrix.cloud.targets.chips import Target
from hackmatrix.core.devices.mesh import SHARDED, first_index, on_devices
from hackmatrix.core.errors import UserError
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer.keys import UpdateKeys
from hackmatrix.learning.trainer.rollout import play
from hackmatrix.learning.trainer.trainer import Trainer

PROGRAMS = ("environment step", "rollout", "update")
# Without these a GPU would have to be there: XLA tries variants of kernels on it.
_WITHOUT_A_GPU = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}


@dataclass(frozen=True)
class CompiledProgram:
    """A program compiled for a target; bytes, FLOPs and events are those of one chip."""

    cpu_seconds: float  # of tracing and compiling
    arguments: int  # bytes of what it is given and returns in the same place
    temporary: int  # bytes besides
    code: int  # bytes of instructions
    flops: float  # of products, in one run
    events: list[hlo.HloEvent]
    unknown_loops: tuple[str, ...]  # loops of which nothing says how often they run: once, here

    @property
    def memory(self) -> int:
        """Bytes that it takes while it runs."""
        return self.arguments + self.temporary + self.code

    def kernels(self, *, by_index: bool = False) -> float:
        """Kernels of one run; only those that gather or scatter, if asked for."""
        kernels = (kernel for kernel in self.events if kernel.category == "kernel")
        return sum(kernel.times for kernel in kernels if kernel.by_index or not by_index)


def compile_programs(
    target: Target,
    devices: Sequence[jax.Device],
    config: TrainConfig,
    programs: Sequence[str],
    engine: str,
) -> dict[str, CompiledProgram]:
    """Some of the `PROGRAMS` of this training.

    Args:
        target: what to compile for.
        devices: its devices, of `topology.devices_of`.
        config: settings of the training.
        programs: which, the keys of the result.
        engine: what plays the games, "pallas" or "jax".

    Raises:
        UserError: the chips can't share the games, or what is compiled does not fit into their
            memory.
    """
    jax.config.update("jax_enable_compilation_cache", False)  # compiling is timed
    if config.num_groups % len(devices):
        raise UserError(
            f"{len(devices)} chips of {target.name} cannot share "
            f"{config.learning.num_envs:,} games evenly: give another --num-envs"
        )
    env = config.environment.for_training(config.environment.make(engine))
    trainer = Trainer(env, config.learning, config.network, devices)
    traced: dict[str, Callable[[], Traced]] = {
        "environment step": lambda: _step(trainer),
        "rollout": lambda: _rollout(trainer),
        "update": trainer.traced,
    }
    return {name: _compile(target, traced[name]) for name in programs}


def _compile(target: Target, trace: Callable[[], Traced]) -> CompiledProgram:
    start = time.process_time()
    traced = trace()
    try:
        executable = traced.lower().compile(
            compiler_options=None if target.is_tpu else _WITHOUT_A_GPU
        )
    except jax.errors.JaxRuntimeError as error:
        raise UserError(_reason(target, str(error))) from None
    seconds = time.process_time() - start
    memory: Any = executable.memory_analysis()
    unknown = set()

    def rounds_of(path: str) -> float:
        if (rounds := loops.rounds_of(path)) is None:
            unknown.add(path)
        return 1.0 if rounds is None else rounds

    return CompiledProgram(
        cpu_seconds=seconds,
        arguments=memory.argument_size_in_bytes,
        temporary=memory.temp_size_in_bytes,
        code=memory.generated_code_size_in_bytes,
        flops=flops(traced.jaxpr.jaxpr),
        events=hlo.events(hlo.read(executable.as_text() or ""), rounds_of),
        unknown_loops=tuple(sorted(unknown)),
    )


def _reason(target: Target, error: str) -> str:
    line = next((line for line in error.splitlines() if line.strip()), "no reason given").strip()
    if "RESOURCE_EXHAUSTED" in error:
        return f"target {target.name}: it does not fit, give fewer --num-envs: {line:.300}"
    return f"target {target.name}: XLA did not compile it: {line:.300}"


def _rollout(trainer: Trainer) -> Traced:
    """The rollout of an update by itself."""
    config = trainer.config

    def rollout(state: Any) -> Any:
        share = config.num_envs // trainer.mesh.size
        game_indices = first_index(share) + jnp.arange(share)
        keys = UpdateKeys(state.seed, state.update)
        with jax.named_scope("rollout"):
            _, played = play(
                trainer.setup,
                trainer.algorithm,
                state.params,
                state.games,
                keys,
                game_indices,
                trainer.hyper,
            )
            return played.steps

    state = trainer.state_shape()
    specs = jax.tree.map(lambda x: x.sharding.spec, state)
    program = on_devices(rollout, trainer.mesh, (specs,), PartitionSpec(None, *SHARDED))
    return program.trace(state)


def _step(trainer: Trainer) -> Traced:
    """A step of the environment, which replaces the state."""
    env = trainer.setup.env

    def step(state: Any, keys: Any, actions: Any) -> Any:
        with jax.named_scope("rollout"):
            return jax.vmap(env.step)(keys, state, actions)

    games = trainer.config.num_envs
    sharding = jax.sharding.NamedSharding(trainer.mesh, SHARDED)
    actions = jax.ShapeDtypeStruct((games,), jnp.int32, sharding=sharding)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), games))
    keys = jax.ShapeDtypeStruct(keys.shape, keys.dtype, sharding=sharding)
    program = on_devices(step, trainer.mesh, (SHARDED,) * 3, SHARDED, donate_argnums=0)
    return program.trace(trainer.state_shape().games.env_state, keys, actions)


def flops(jaxpr: Jaxpr) -> float:
    """Floating-point operations of the products of a traced function, 2 for each factor pair.

    Loops whose end is not known count once.
    """
    total = 0.0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "dot_general":
            (contracted, _), _ = eqn.params["dimension_numbers"]
            left, out = eqn.invars[0].aval, eqn.outvars[0].aval
            inner = math.prod(left.shape[axis] for axis in contracted)  # type: ignore[attr-defined]
            total += 2.0 * inner * math.prod(out.shape)  # type: ignore[attr-defined]
        rounds = eqn.params.get("length", 1) if eqn.primitive.name == "scan" else 1
        inside = [flops(part) for part in _inside(eqn.params)]
        if eqn.primitive.name == "cond":
            inside = [max(inside, default=0.0)]
        total += rounds * sum(inside)
    return total


def _inside(params: dict[str, Any]) -> list[Jaxpr]:
    parts = [part for value in params.values() for part in _as_tuple(value)]
    return [getattr(part, "jaxpr", part) for part in parts if hasattr(part, "eqns")]


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
