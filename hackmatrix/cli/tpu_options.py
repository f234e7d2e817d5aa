"""Options of the subcommands of `hackmatrix tpu`."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from hackmatrix.core.options import check, option

_HOSTS = "number of a host, 0-3 for several, or all"


@dataclass(frozen=True)
class TpuOptions:
    """Options of every subcommand."""

    file: Path = option(dataclasses.MISSING, "description of the TPU and of the training on it")
    dry_run: bool = option(False, "print the gcloud lines; run and write nothing")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class CreateOptions(TpuOptions):
    """Options that ask for a TPU."""

    direct: bool = option(False, "create the TPU now or fail, without the queue")


@dataclass(frozen=True)
class HostOptions(TpuOptions):
    """Which hosts."""

    worker: str = option("all", _HOSTS)


@dataclass(frozen=True)
class LogOptions(TpuOptions):
    """Options of the logs."""

    worker: str = option("0", _HOSTS)
    lines: int = option(100, "number of last lines", at_least=1)
    follow: bool = option(False, "keep printing new output")
    service: bool = option(False, "the log of the TPU's own service instead of training's")


@dataclass(frozen=True)
class FetchOptions(TpuOptions):
    """Where to."""

    output: Path = option(Path("checkpoints"), "local folder to copy the run into")


@dataclass(frozen=True)
class RunOptions(FetchOptions):
    """Options of resuming."""

    retry: bool = option(False, "after training failed: update the code and try again")
    keep: bool = option(False, "keep the TPU when training has finished")
    delete_on_failure: bool = option(
        False, "if training fails, fetch what is there and delete the TPU instead of keeping it"
    )
