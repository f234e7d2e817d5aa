"""Variables of other trainers' documents that stand for flags of `hackmatrix train`."""

from collections.abc import Mapping
from typing import Any

from hackmatrix.core.errors import UserError

_OF_PROCESSES = (
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "RANK",
)  # as torch.distributed has them


def add_variables(
    variables: Mapping[str, str],
    flags: dict[str, Any],
    options: dict[str, Any],
    in_file: Mapping[str, Any],
) -> list[str]:
    """Adds the flags that variables stand for, unless they are given; returns a line for each.

    Args:
        variables: those of the process.
        flags: settings that the command line gives.
        options: fields of `TrainOptions` that it gives.
        in_file: settings of the file of `--config`.

    Raises:
        UserError: variables of several processes are incomplete, or no numbers.
    """
    notes = []
    if variables.get("XLA_USE_BF16") == "1" and "dtype" not in flags:
        flags["dtype"] = "bfloat16"
        notes.append("XLA_USE_BF16=1 is taken as --dtype bfloat16")
    distributed = {**in_file, **flags}.get("distributed")
    typed = {"coordinator", "num_processes", "process_id"} & options.keys()
    if distributed and "MASTER_ADDR" in variables and not typed:
        missing = [name for name in _OF_PROCESSES if name not in variables]
        if missing:
            raise UserError(f"MASTER_ADDR is set, and {', '.join(missing)} not: set all, or none")
        address, port, *numbers = (variables[name] for name in _OF_PROCESSES)
        if not all(number.isdecimal() for number in numbers):
            raise UserError(f"WORLD_SIZE and RANK must be numbers, got {' and '.join(numbers)}")
        size, rank = map(int, numbers)
        options |= {"coordinator": f"{address}:{port}", "num_processes": size, "process_id": rank}
        notes.append(
            f"MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK: process {rank} of {size}, coordinator "
            f"{address}:{port}; one process a host, whatever the number of its chips"
        )
    return notes
