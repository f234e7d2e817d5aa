"""The options of `hackmatrix bench target`. Imports no JAX, so that `--help` is fast."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options


@dataclass(frozen=True, kw_only=True)
class TargetOptions(Options):
    """Options of `bench target`."""

    target: str = option(
        dataclasses.MISSING, "what to compile for: v4-8, v5e-8, v5p-8, v6e-8, h100 or h200"
    )
    config: Path = option(Path("tpu_v4_8"), "settings: a YAML file or a name of `train`")
    kernels: Literal["auto", "xla"] = option(
        "auto", "what plays the games, as in training: kernels of our own, or what XLA compiles"
    )
    num_envs: int | None = option(
        None, "games of all chips; by default those of --config", at_least=1, at_most=2**24
    )
