"""Compiles the programs of a training for a target, and reads their size from what comes out."""

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn
from jax.sharding import PartitionSpec
from jax.stages import Traced

from hackmatrix.cloud.targets import hlo
from hackmatrix.cloud.targets.chips import Target
from hackmatrix.cloud.tpu.hardware import FAMILIES, slice_of
from hackmatrix.core.devices.mesh import SHARDED, first_index, on_devices
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.environments.hackmatrix.pallas_games import one_game
from hackmatrix.game.foresight import kernel as tactical
from hackmatrix.game.foresight.jax_layout import tactical_words
from hackmatrix.game.jaxgame import kernel, undo
from hackmatrix.game.jaxgame.control_flow import accelerators_too
from hackmatrix.game.jaxgame.mosaic import BLOCK, GAMES_OF_A_BLOCK
from hackmatrix.game.rules.observation import RECORD_SIZE
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
    with accelerators_too():
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

    def rounds_or_one(path: str) -> float:
        if (rounds := rounds_of(path)) is None:
            unknown.add(path)
        return 1.0 if rounds is None else rounds

    return CompiledProgram(
        cpu_seconds=seconds,
        arguments=memory.argument_size_in_bytes,
        temporary=memory.temp_size_in_bytes,
        code=memory.generated_code_size_in_bytes,
        flops=flops(traced.jaxpr.jaxpr),
        events=hlo.events(hlo.read(executable.as_text() or ""), rounds_or_one),
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


# --- How often the loops of a step run that end when the last of a chip's games is done -----------


# Mean rounds of a run of each loop, by the name that `control_flow.name_of` gives it: counted in
# 2,048 games of random play, 2026-11-25. More games take little more.
ROUNDS: dict[str, float] = {
    "batch._begin_due": 2.0,
    "batch._first_valid_layout": 1.9,
    "batch._move_enemies": 17.7,
    "batch._newest_saved": 0.7,
    "batch.for_few": 0.6,
    "kernel._begin_due": 2.0,
    "kernel._begin_next": 0.5,
    "kernel._first_valid_layout": 1.5,
    "kernel.play": 34.8,  # of blocks of 1,024 games, as those before
    "movement.exit_distance": 3.8,
    "programs.poly": 1.1,
    "spawning.spawn": 6.8,
    "stage.draw_layout": 10.9,
    "stage.is_valid_layout": 10.1,
    "stage.place_blocks": 10.8,
    "updates": 1.0,  # of the learner: all figures are those of one
}


def rounds_of(path: str) -> float | None:
    """The mean rounds of a loop, by its path in a compiled program; None if it is not known."""
    *_, name, _ = ["", *path.split("/")]
    return ROUNDS.get(name)


# --- The devices of a target, without the target: programs compile for them and do not run --------
#
# `libtpu` and the CUDA plugin of JAX make them from a description
# (https://docs.jax.dev/en/latest/aot.html).


# What XLA reads of a GPU. Registers, threads and shared memory are those of compute capability 9.0.
_GPU = """
platform_name: "CUDA"
device_description_str: "{name}"
dnn_version_info {{ major: 9 minor: 8 }}
runtime_version {{ major: 12 minor: 9 patch: 0 }}
gpu_device_info {{
  cuda_compute_capability {{ major: 9 }}
  core_count: 132
  fpus_per_core: 128
  threads_per_warp: 32
  threads_per_block_limit: 1024
  threads_per_core_limit: 2048
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  registers_per_block_limit: 65536
  registers_per_core_limit: 65536
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  l2_cache_size: 52428800
  clock_rate_ghz: {clock}
  memory_bandwidth: {bandwidth:.0f}
  device_memory_size: {memory}
}}
"""


def devices_of(target: Target) -> list[jax.Device]:
    """The devices; JAX itself stays on CPU in this process.

    Raises:
        UserError: the compiler for it is not installed, or does not make them.
    """
    jax.config.update("jax_platforms", "cpu")
    need("libtpu" if target.is_tpu else "jax_plugins")
    try:
        topology = _tpu(target) if target.is_tpu else _gpu(target)
    except (jax.errors.JaxRuntimeError, NotImplementedError, RuntimeError) as error:
        first = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise UserError(
            f"target {target.name}: JAX {jax.__version__} can't describe it here ({first:.200}); "
            "try `bench train` on a machine that has one"
        ) from None
    return list(topology.devices)


def _tpu(target: Target) -> topologies.TopologyDescription:
    found = slice_of(target.name)
    of_host = {8: (2, 4, 1), 4: (2, 2, 1), 1: (1, 1, 1)}[found.chips_per_host]
    os.environ |= {
        "TPU_SKIP_MDS_QUERY": "1",  # which would ask a machine of Google's
        "TPU_ACCELERATOR_TYPE": found.type,
        "TPU_WORKER_HOSTNAMES": "localhost",
        "TPU_WORKER_ID": "0",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }
    more: dict[str, Any] = {"chips_per_host_bounds": of_host}
    if FAMILIES[target.family].dimensions == 3:
        more["chip_config_name"] = "megacore"  # one device for the two cores of a chip
    return topologies.get_topology_desc(f"{target.family}:{target.grid}", "tpu", **more)


def _gpu(target: Target) -> topologies.TopologyDescription:
    chip = target.chip
    described = _GPU.format(
        name=f"NVIDIA {target.name.upper()}",
        clock=chip.clock,
        bandwidth=chip.bandwidth,
        memory=chip.memory,
    )
    return topologies.get_topology_desc(
        target.name, "cuda", target_config=described, topology=target.grid
    )


# --- Vector operations of the kernels of Pallas, of which the compiler estimates no cycles --------
#
# A value of a block of 1,024 games is a register, and what is done to it one vector operation.


_FREE = {
    *("broadcast_in_dim", "reshape", "squeeze", "slice", "concatenate", "stack", "expand_dims"),
    *("convert_element_type", "iota", "bitcast_convert_type", "platform_index"),
}
# Vector operations of those that take several: shifts are guarded, maxima go across lanes.
_DEAR = {"shift_left": 3, "shift_right_logical": 3, "reduce_max": 20, "reduce_or": 20, "gather": 4}
_AN_ARRAY = 12  # operations for a block of an array that gets in or out of a kernel


@cache
@accelerators_too()
def operations(product: int) -> dict[str, float]:
    """Vector operations of a block of 1,024 games, for each kernel by the name of its scope.

    Args:
        product: what a product of two words takes.
    """

    def block(dtype: Any, *before: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((*before, *BLOCK), dtype)

    game = one_game()
    games = jax.tree.map(lambda x: block(x.dtype), undo.without_rows(game))
    position = block(jnp.uint32, game.saved.rows.shape[-1])
    record, word = block(jnp.uint32, RECORD_SIZE // 4), block(jnp.int32)
    rules = {
        kernel.SCOPE: jax.make_jaxpr(partial(kernel.play, restarts=True))(
            games, word, position, word
        ),
        tactical.SCOPE: jax.make_jaxpr(tactical_words)(record),
    }
    return {name: _of(rule, product) for name, rule in rules.items()}


def _of(rule: ClosedJaxpr, product: int) -> float:
    arrays = sum(_registers(x.aval) for x in (*rule.jaxpr.invars, *rule.jaxpr.outvars))
    return _AN_ARRAY * arrays + _counted(rule.jaxpr, product)


def _counted(jaxpr: Jaxpr, product: int) -> float:
    return sum(_operations(eqn, product) for eqn in jaxpr.eqns)


def _operations(eqn: JaxprEqn, product: int) -> float:
    name, inside = eqn.primitive.name, eqn.params
    if name in _FREE:
        return 0.0
    if name == "jit":
        return _counted(inside["jaxpr"].jaxpr, product)
    if name == "scan":
        return float(inside["length"]) * _counted(inside["jaxpr"].jaxpr, product)
    if name == "while":
        rounds = ROUNDS[str(eqn.source_info.name_stack).rpartition("/")[2]]
        body, condition = inside["body_jaxpr"], inside["cond_jaxpr"]
        end = _counted(condition.jaxpr, product)
        return rounds * _counted(body.jaxpr, product) + (rounds + 1) * end
    if name == "cond":
        sides = [_counted(side.jaxpr, product) for side in inside["branches"]]
        by_platform = inside.get("branches_platforms") is not None
        return sides[-1] if by_platform else max(sides)  # the last is that for accelerators
    registers = max(_registers(x.aval) for x in (*eqn.invars, *eqn.outvars))
    return registers * (product if name == "mul" else _DEAR.get(name, 1))


def _registers(aval: Any) -> int:
    """Registers that an array of a block takes; a number of the whole block takes none."""
    return math.prod(aval.shape) // GAMES_OF_A_BLOCK
