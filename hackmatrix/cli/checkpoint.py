"""`hackmatrix checkpoint`: lists, checks and converts checkpoints and files of params."""

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.cli.arguments import parse, run_subcommand
from hackmatrix.cli.buckets import local
from hackmatrix.cli.main import FAILED
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option

if TYPE_CHECKING:
    from hackmatrix.research.evaluation.report import Report
    from hackmatrix.runs.params import Exported

_HELP = """\
usage: hackmatrix checkpoint {list,verify,convert} ...

  list     the checkpoints and files of params of runs
  verify   check them: checksums, shapes, finite numbers, the network, the recorded evaluation
  convert  write params in another format: .npz, .safetensors, .onnx

`hackmatrix checkpoint verify --help` explains one of them and shows an example.
"""


@dataclass(frozen=True)
class ListOptions:
    """The options of `list`."""

    runs: tuple[Path, ...] = option(
        dataclasses.MISSING, "runs, or folders of runs, here or as gs://..."
    )
    json: bool = option(False, "print one JSON object")


@dataclass(frozen=True)
class CheckpointVerifyOptions:
    """The options of `verify`."""

    paths: tuple[Path, ...] = option(
        dataclasses.MISSING,
        "checkpoints, files of params, or runs and folders of runs, of which all are checked; here "
        "or as gs://...",
    )
    evaluate: bool = option(True, "play the games of the recorded evaluation again")
    env: str | None = option(
        None, "environment of the agents, if it is one of your own (module:function)"
    )
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)
    json: bool = option(False, "print one JSON object")


@dataclass(frozen=True)
class ConvertOptions:
    """The options of `convert`."""

    source: Path = option(
        dataclasses.MISSING,
        "a checkpoint, a run, or a file: .npz, .safetensors, .onnx, or .pkl of the original; here "
        "or as gs://...",
    )
    target: Path = option(
        dataclasses.MISSING,
        "new file; its suffix gives the format: .npz, .safetensors or .onnx",
    )
    agent: int = option(0, "agent to take from a checkpoint of several, counted from 0", at_least=0)
    int8: bool = option(False, "round large tables to 8 bits: a fourth of the size, for .npz")
    evaluate: int | None = option(
        None,
        "games to play for the model card, instead of the evaluation recorded in training",
        at_least=1,
        at_most=10_000_000,
    )
    env: str | None = option(
        None, "with --evaluate: the agent's environment, if it is code of your own"
    )
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)

    def __post_init__(self) -> None:
        check(self)


def main(argv: list[str]) -> int:
    """Runs the command."""
    return run_subcommand(
        "hackmatrix checkpoint", {"list": list_, "verify": verify, "convert": convert}, argv, _HELP
    )


def list_(argv: list[str]) -> int:
    """`hackmatrix checkpoint list`."""
    options = parse(
        ListOptions,
        argv,
        command="hackmatrix checkpoint list",
        purpose="Lists the checkpoints and files of params of runs.",
        example="  hackmatrix checkpoint list checkpoints/my-run",
    )
    from hackmatrix.research.exchange.contents import list_rows, params_files_of, runs_at, table

    named = [local(run, checkpoints=True) for run in options.runs]
    runs = [run for path in named for run in runs_at(path)]
    rows = [row for run in runs for row in list_rows(params_files_of(run), run)]
    if options.json:
        print(json.dumps({"checkpoints": [row.as_dict() for row in rows]}))
    else:
        print(table(rows))
    return 0


def verify(argv: list[str]) -> int:
    """`hackmatrix checkpoint verify`; the exit code is 1 if a check fails."""
    options = parse(
        CheckpointVerifyOptions,
        argv,
        command="hackmatrix checkpoint verify",
        purpose="Checks checkpoints and params: checksums, shapes, finite numbers, the network's "
        "answers, and the recorded evaluation, whose games are played again.",
        example="  hackmatrix checkpoint verify checkpoints/my-run --no-evaluate",
    )
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.research.exchange.contents import params_files_of, runs_at
    from hackmatrix.research.exchange.verification import verify as checks_of

    named = [local(path, checkpoints=True) for path in options.paths]
    paths = [found for path in named for run in runs_at(path) for found in params_files_of(run)]
    enable_compilation_cache()
    results, failed = {}, False
    for path in paths:
        checks = []
        if not options.json:
            print(path)
        for outcome in checks_of(path, evaluate=options.evaluate, own=options.env):
            checks.append(outcome)
            said = {True: "ok", False: "FAILED", None: "-"}[outcome.passed]
            if not options.json:
                print(f"  {outcome.name:<16}{said:<8}{outcome.text}", flush=True)
        failed |= any(each.passed is False for each in checks)
        results[str(path)] = [each._asdict() for each in checks]
    if options.json:
        print(json.dumps({"passed": not failed, "checks": results}))
    return FAILED if failed else 0


def convert(argv: list[str]) -> int:
    """`hackmatrix checkpoint convert`."""
    options = parse(
        ConvertOptions,
        argv,
        command="hackmatrix checkpoint convert",
        purpose="Writes params in another format, and a model card (.md) beside them. Pickles are "
        "read as data: nothing in them runs.",
        example="  hackmatrix checkpoint convert checkpoints/my-run my-agent.onnx\n"
        "  hackmatrix checkpoint convert checkpoint_100.pkl my-agent.npz",
    )
    from hackmatrix.core.files import check_writable, write_atomically
    from hackmatrix.research.exchange.contents import read_params_of
    from hackmatrix.research.exchange.formats import check_new, write_params
    from hackmatrix.research.exchange.model_card import model_card
    from hackmatrix.runs.params import round_tables

    check_new(options.target)
    if options.int8 and options.target.suffix != ".npz":
        raise UserError(f"{options.target}: --int8 is for files that end in .npz")
    card = options.target.with_name(f"{options.target.name}.md")
    if os.path.lexists(card):
        raise UserError(f"{card}: exists already: choose another name")
    for file in (options.target, card):
        check_writable(file, str(file))
    agent = read_params_of(local(options.source, checkpoints=True), options.agent)
    report = None if options.evaluate is None else _play_games(agent, options.evaluate, options.env)
    text = model_card(options.target.name, agent, report).encode()
    params = round_tables(agent.params) if options.int8 else agent.params
    write_params(options.target, params, agent.about)
    try:
        write_atomically(card, text)
    except OSError:  # so that the same command can be given again
        options.target.unlink()
        if options.target.suffix == ".npz":
            options.target.with_suffix(".json").unlink()
        raise
    print(f"{options.target}: the params of {agent.path}\n{card}: their model card")
    return 0


def _play_games(agent: "Exported", episodes: int, env: str | None) -> "Report":
    """Games of an agent for its card."""
    from hackmatrix.agents.networks.policy import policy_of
    from hackmatrix.core.version import ENVIRONMENT_ID
    from hackmatrix.research.evaluation.jax_agents import network_report
    from hackmatrix.research.evaluation.limits import Limits

    policy, limits = policy_of(agent), Limits(episodes)
    return network_report(policy, env or ENVIRONMENT_ID, limits, greedy=False, search=None)
