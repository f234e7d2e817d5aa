"""`hackmatrix train --distributed`: on each host a parent, and the process that trains.

The parent runs `python -m hackmatrix.cli.distributed PIPE ARGUMENT...`.
"""

import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from hackmatrix.cli import train
from hackmatrix.cli.main import FAILED, exit_code
from hackmatrix.core.errors import UserError
from hackmatrix.core.processes import RESTART_ME
from hackmatrix.learning.settings.config import RunConfig

if TYPE_CHECKING:
    from hackmatrix.core.devices.team import Team

_COMMAND = "hackmatrix train"


def main(argv: list[str]) -> int:
    """Trains together with the other processes."""
    pipe, *arguments = argv
    return exit_code(_COMMAND, lambda: _train(arguments, int(pipe)))


def _train(argv: list[str], pipe: int) -> int:
    command = train.parse(argv)
    options = command.options
    from hackmatrix.core.devices.team import LostError, TeamConfig, join
    from hackmatrix.learning.settings.devices import set_up_devices

    settings = {**command.in_file, **command.flags}
    of_devices = {name: settings[name] for name in ("device", "num_devices") if name in settings}
    set_up_devices(RunConfig(**of_devices), options.num_processes or 1)
    place = TeamConfig(
        options.coordinator, options.num_processes, options.process_id, options.heartbeat_timeout
    )
    team = join(place, _Beat(pipe), partial(print, flush=True), _give_up)
    if team is None:
        if "distributed" in command.flags:
            raise UserError(
                "--distributed: JAX finds no TPU pod and no job of Slurm here; give --coordinator "
                "HOST:PORT, --num-processes and --process-id"
            )
        print("distributed: no other processes are found, this one trains alone", flush=True)
        os.close(pipe)  # it is not watched either
        return train.run(command)
    try:
        code = _lead(team, command) if team.leads else _follow(team)
    except LostError as error:
        _give_up(str(error))
    team.leave()
    return code


def _lead(team: "Team", command: train.TrainCommand) -> int:
    code = FAILED
    try:
        code = exit_code(_COMMAND, lambda: train.run(command, team))
    finally:
        team.end(code)
    return code


def _follow(team: "Team") -> int:
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.learning.run.multi_process import follow

    print(f"process {team.index} of {team.size}, led by process 0", flush=True)
    enable_compilation_cache()
    code = exit_code(_COMMAND, lambda: follow(team))
    if code:
        print(f"process {team.index} of {team.size} ends with exit code {code}", flush=True)
    return code


class _Beat:
    """Tells the parent that this process gets on; without a parent it is to stop."""

    def __init__(self, pipe: int) -> None:
        self._pipe: int | None = pipe

    def __call__(self) -> None:
        if self._pipe is None:
            return
        try:
            os.write(self._pipe, b".")
        except BrokenPipeError:
            self._pipe = None
            signal.raise_signal(signal.SIGTERM)


def _give_up(why: str) -> NoReturn:
    """Ends this process without waiting for others, as JAX would."""
    print(
        f"{_COMMAND}: error: {why}; start all processes again, with --resume if there is a "
        f"checkpoint (exit code {RESTART_ME})",
        file=sys.stderr,
    )
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(RESTART_ME)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
