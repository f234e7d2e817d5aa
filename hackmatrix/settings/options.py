"""What belongs to one call of `hackmatrix train`, and not to the run's configuration."""

from dataclasses import dataclass
from pathlib import Path

from hackmatrix.errors import UserError
from hackmatrix.options import check_ranges, flag, option
from hackmatrix.runs.names import check_word


@dataclass(frozen=True)
class TrainOptions:
    """Where settings come from, where the run goes, what it continues, and how it is looked at."""

    config: Path | None = option(None, "settings from a YAML file; flags override it")
    print_config: bool = option(False, "print the resolved settings as YAML, and train nothing")
    auto_tune: bool = option(False, "choose for this device whatever is not given: see docs")
    output_dir: Path | None = option(None, "the run's folder itself, in place of a name")
    run_name: str | None = option(
        None, "folder of the run; hackmatrix-jax-{mon}{dd}-{yy}-{n} unless given"
    )
    run_suffix: str | None = option(None, "added to the name of the run")
    resume: str | None = option(
        None,
        "continue a run's folder or a checkpoint; or start from exported params",
        also=("resume_from",),
    )
    resume_run: str | None = option(None, "continue the run of this name in --checkpoint-dir")
    rewind: bool = option(
        False, "with --resume of an older checkpoint: drop what the run did after it"
    )
    reset_optimizer: bool = option(False, "with --resume: start with a fresh optimizer state")
    profile: bool = option(False, "write a trace of one update for TensorBoard's profiler")
    profile_step: int = option(3, "the update that --profile traces", at_least=1)
    detect_anomaly: bool = option(
        False, "stop at the first NaN or infinite number, and name update, minibatch and tensor"
    )
    debug: bool = option(False, "tell the devices, and the time and memory of every call")

    def __post_init__(self) -> None:
        check_ranges(self)
        for name in ("run_name", "run_suffix", "resume_run"):
            if (text := getattr(self, name)) is not None:
                check_word(flag(name), text)
        if self.output_dir is not None:
            if str(self.output_dir).startswith("gs:"):
                raise UserError("--output-dir must be a local folder")
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
