"""All commands with their subcommands."""

from hackmatrix.cli.bench import BENCHMARKS
from hackmatrix.cli.main import COMMANDS
from hackmatrix.cli.tpu import SUBCOMMANDS

_INNER = {
    "bench": tuple(BENCHMARKS),
    "tpu": tuple(SUBCOMMANDS),
    "data": ("record", "verify", "export"),
    "checkpoint": ("list", "verify", "convert"),
    "sb3": ("train", "watch"),
}


def subcommands() -> list[str]:
    """Such as "play" and "data record"."""
    return [
        " ".join(filter(None, (name, inner)))
        for name in COMMANDS
        for inner in _INNER.get(name, ("",))
    ]
