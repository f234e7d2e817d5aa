"""The devices of a target, without the target: programs compile for them and do not run.

`libtpu` and the CUDA plugin of JAX make them from a description (https://docs.jax.dev/en/latest/aot.html).
"""

import os
from typing import Any

import jax
from jax.experimental import topologies

from hackmatrix.cloud.targets.chips import Target
from hackmatrix.cloud.tpu.hardware import FAMILIES, slice_of
from hackmatrix.core.errors import UserError
from hackmatrix.core.extras import need

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
