"""The scripts of the original and of other trainers' documents: each is a command of ours.

The files of these names, in the repository's root, `scripts/` and `python/scripts/`, call `run`.
"""

import argparse
import os
import sys
from typing import NamedTuple

from hackmatrix.cli.arguments import move_values_first
from hackmatrix.cli.main import main
from hackmatrix.runs.names import PICKLES


class Script(NamedTuple):
    """The command that a script stands for."""

    command: str
    paths: tuple[str, ...] = ()  # its flags for what the command takes without a flag
    config: str | None = None  # the settings, unless the command line names others


SCRIPTS = {
    "train.py": Script("train"),
    "scripts/convert_checkpoint.py": Script("checkpoint convert", ("--input", "--output")),
    "scripts/hyperparameter_search.py": Script("tune --sampler grid", config="original"),
    "scripts/monitor_training.py": Script("monitor"),
    "scripts/optuna_search.py": Script("tune --sampler tpe", config="original"),
    "scripts/prepare_data.py": Script("data record", ("--output-dir",)),
    "scripts/train.py": Script("sb3 train"),
    "scripts/train_purejaxrl.py": Script("train", config="original"),
    "scripts/verify_checkpoint.py": Script("checkpoint verify", ("--checkpoint",)),
    "scripts/verify_data.py": Script("data verify", ("--data-dir",)),
    "scripts/watch_jax_agent.py": Script("watch"),
    "scripts/watch_trained_agent.py": Script("sb3 watch"),
}


def run(name: str) -> int:
    """Runs the command of a script with the words of this process; returns the exit code."""
    return main(command_line(name, sys.argv[1:]))


def command_line(name: str, argv: list[str]) -> list[str]:
    """The words of `hackmatrix ...` for those of a script.

    Args:
        name: of the script, a key of `SCRIPTS`.
        argv: the words after it.
    """
    script = SCRIPTS[name]
    settings = ["--config", script.config] if script.config and _takes_settings(argv) else []
    return [*script.command.split(), *settings, *move_values_first(argv, list(script.paths))]


def _takes_settings(argv: list[str]) -> bool:
    """Whether a command line names no file of settings, and no run that keeps its own."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config")
    parser.add_argument("--resume-run")
    parser.add_argument("--resume", "--resume-from", default="")
    try:
        options, _ = parser.parse_known_args(argv)
    except argparse.ArgumentError:  # which the command will say
        return True
    is_pickle = options.resume.endswith(PICKLES) and os.path.isfile(options.resume)
    resumes_run = options.resume and not (options.resume.endswith(".npz") or is_pickle)
    return not (options.config or options.resume_run or resumes_run)
