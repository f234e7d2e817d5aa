"""Options of one `hackmatrix train` command that are not part of the run's configuration."""

from dataclasses import dataclass
from pathlib import Path

from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, flag, option
from hackmatrix.runs.names import check_word

_PROCESS_NUMBERS = ("num_processes", "process_id")


@dataclass(frozen=True)
class TrainOptions:
    """Where settings come from, the run's folder, what to resume, and diagnostics."""

    config: Path | None = option(
        None,
        "settings: a YAML file or a name from --list-configs; flags override them; default of a "
        "new run of HackMatrix: best",
    )
    list_configs: bool = option(False, "list the names that --config accepts, and exit")
    print_config: bool = option(False, "print the resolved settings as YAML and exit")
    auto_tune: bool = option(
        False,
        "choose the batch and the precision for this device, unless given, see docs/training.md",
    )
    output_dir: Path | None = option(None, "folder of the run, instead of a name; or gs://...")
    run_name: str | None = option(
        None, "name of the run and its folder; default hackmatrix-jax-{mon}{dd}-{yy}-{n}"
    )
    run_suffix: str | None = option(None, "text added to the name of the run")
    resume: str | None = option(
        None,
        "run or checkpoint to resume, or exported params to start from: a path or gs://...",
        aliases=("resume_from",),
    )
    resume_run: str | None = option(None, "run to resume, by its name in --checkpoint-dir")
    resume_if_there: bool = option(
        False,
        "resume the run that --run-name or --output-dir names if it exists, else begin it: the "
        "same line starts and restarts a job",
    )
    rewind: bool = option(False, "with --resume of an older checkpoint: delete everything after it")
    reset_optimizer: bool = option(False, "with --resume: start with a fresh optimizer state")
    profile: bool = option(False, "write a trace of one update for TensorBoard's profiler")
    profile_step: int = option(3, "the update that --profile traces", at_least=1)
    detect_anomaly: bool = option(
        False, "stop at the first NaN or infinity, and name its update, minibatch and tensor"
    )
    debug: bool = option(False, "print the devices, and time and memory of every call")
    coordinator: str | None = option(
        None,
        "with --distributed: address of process 0, as HOST:PORT; TPUs and Slurm need none",
    )
    num_processes: int | None = option(
        None, "with --coordinator: number of the processes", at_least=1, at_most=4096
    )
    process_id: int | None = option(
        None, "with --coordinator: number of this process, from 0", at_least=0
    )
    heartbeat_timeout: int = option(
        100,
        "with --distributed: seconds of silence after which a process counts as lost",
        at_least=5,
        at_most=86_400,
    )
    stall_timeout: float = option(
        1800.0,
        "with --distributed: seconds without an update after which a process is killed as stuck",
        at_least=1,
    )

    def __post_init__(self) -> None:
        check(self)
        for name in ("run_name", "run_suffix", "resume_run"):
            if (text := getattr(self, name)) is not None:
                check_word(flag(name), text)
        if self.output_dir is not None:
            if str(self.output_dir).startswith("gs:"):
                raise UserError("output_dir must be a folder here, see docs/buckets.md")
            if self.run_name or self.run_suffix:
                raise UserError("--output-dir is the run's folder: give no --run-name with it")
        if self.resume == "":
            raise UserError("--resume must name a run's folder, a checkpoint or exported params")
        if self.resume and self.resume_run:
            raise UserError("give --resume or --resume-run, not both")
        if self.resume_if_there:
            if self.resume or self.resume_run:
                raise UserError("--resume-if-there names no run: give it without --resume")
            if not (self.run_name or self.output_dir):
                raise UserError("--resume-if-there needs --run-name or --output-dir")
        self._check_processes()
        if not (self.resume or self.resume_run):
            for name in ("rewind", "reset_optimizer"):
                if getattr(self, name):
                    raise UserError(f"{flag(name)} needs --resume")

    def _check_processes(self) -> None:
        place = {name: getattr(self, name) for name in ("coordinator", *_PROCESS_NUMBERS)}
        if any(value is not None for value in place.values()):
            for name in (name for name, value in place.items() if value is None):
                raise UserError(
                    f"{flag(name)} is missing: --coordinator, --num-processes and --process-id are "
                    "given together, or none of them"
                )
        host, colon, port = (self.coordinator or "localhost:1").rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) < 2**16):
            raise UserError(f"--coordinator must be HOST:PORT, got {self.coordinator}")
        if self.process_id is not None and self.process_id >= (self.num_processes or 0):
            raise UserError(
                f"--process-id {self.process_id} must be below --num-processes "
                f"{self.num_processes}: they count from 0"
            )
