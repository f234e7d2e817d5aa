"""Options of one `hackmatrix train` command that are not part of the run's configuration."""

from dataclasses import dataclass
from pathlib import Path

from hackmatrix.errors import UserError
from hackmatrix.options import check, flag, option
from hackmatrix.runs.names import check_word


@dataclass(frozen=True)
class TrainOptions:
    """Where settings come from, the run's folder, what to resume, and diagnostics."""

    config: Path | None = option(None, "settings from a YAML file; flags override it")
    print_config: bool = option(False, "print the resolved settings as YAML and exit")
    auto_tune: bool = option(
        False, "choose the settings for this device that are not given, see docs/training.md"
    )
    output_dir: Path | None = option(None, "the run's folder, instead of a name; or gs://...")
    run_name: str | None = option(
        None, "name of the run and of its folder; hackmatrix-jax-{mon}{dd}-{yy}-{n} unless given"
    )
    run_suffix: str | None = option(None, "text added to the name of the run")
    resume: str | None = option(
        None,
        "folder of a run or checkpoint to go on from, or exported params to start from; or gs://...",
        aliases=("resume_from",),
    )
    resume_run: str | None = option(None, "name of a run in --checkpoint-dir to go on from")
    rewind: bool = option(
        False, "with --resume of an older checkpoint: delete what the run did after it"
    )
    reset_optimizer: bool = option(False, "with --resume: start with a fresh optimizer state")
    profile: bool = option(False, "write a trace of one update for TensorBoard's profiler")
    profile_step: int = option(3, "the update that --profile traces", at_least=1)
    detect_anomaly: bool = option(
        False, "stop at the first NaN or infinity, and name its update, minibatch and tensor"
    )
    debug: bool = option(False, "print the devices, and time and memory of every call")

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
        if not (self.resume or self.resume_run):
            for name in ("rewind", "reset_optimizer"):
                if getattr(self, name):
                    raise UserError(f"{flag(name)} needs --resume")
