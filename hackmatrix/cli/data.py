"""`hackmatrix data`: records games of agents, checks them, and exports them."""

import contextlib
import dataclasses
import json
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.agents.roster import names
from hackmatrix.cli.arguments import parse, run_subcommand
from hackmatrix.cli.buckets import local
from hackmatrix.cli.main import FAILED
from hackmatrix.core.imports import need
from hackmatrix.core.options import check, option
from hackmatrix.core.streams import below
from hackmatrix.learning.settings.config import MAX_SEED

if TYPE_CHECKING:
    from hackmatrix.research.datasets.folder import Shard, Writer

_HELP = """\
usage: hackmatrix data {record,verify,export} ...

  record   record games of an agent as a data set
  verify   replay the games of a data set and name the first difference
  export   write games of a data set for Minari

`hackmatrix data record --help` describes a command and shows an example.
"""

_OWN = "environment of the data set, if it is your own (module:function)"


@dataclass(frozen=True)
class RecordOptions:
    """The options of `record`."""

    out: Path = option(dataclasses.MISSING, "folder of the new data set")
    agent: str = option("random", f"who plays: {names.AN_AGENT}")
    episodes: int = option(10_000, "number of games", at_least=1, at_most=2**31 - 1)
    env: str = option(
        "HackMatrix",
        "environment for `random`, and for params if it is your own (module:function)",
        aliases=("env_name",),
    )
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)
    seed: int = option(0, "seed of the games", at_least=0, at_most=MAX_SEED)
    max_steps: int = option(
        2_000, "actions after which a game is truncated", at_least=1, at_most=100_000
    )
    greedy: bool = option(False, "always take the most probable action instead of sampling one")
    search: int | None = option(None, names.SEARCH, at_least=1, at_most=names.MAX_SIMULATIONS)
    json: bool = option(False, "print one JSON object")

    def __post_init__(self) -> None:
        check(self)
        names.check_environment([self.agent], self.env)


@dataclass(frozen=True)
class DataVerifyOptions:
    """The options of `verify`."""

    data: Path = option(dataclasses.MISSING, "folder of the data set")
    oracle: bool = option(False, "replay all games in the Python engine too, not only 64")
    env: str | None = option(None, _OWN)
    json: bool = option(False, "print one JSON object")


@dataclass(frozen=True)
class DataExportOptions:
    """The options of `export`."""

    data: Path = option(dataclasses.MISSING, "folder of the data set")
    name: str = option(
        dataclasses.MISSING, "id of the new Minari data set, such as hackmatrix/it-v0"
    )
    episodes: int = option(1_000, "maximum number of games", at_least=1)
    max_steps: int = option(1_000_000, "maximum number of actions, in whole games", at_least=1)
    observation: str = option(
        "dict",
        "observations of HackMatrix, as in its Gymnasium environment",
        choices=("dict", "compact", "classic", "full", "tactical", "planes"),
    )
    env: str | None = option(None, _OWN)

    def __post_init__(self) -> None:
        check(self)


def main(argv: list[str]) -> int:
    """Runs the command."""
    return run_subcommand(
        "hackmatrix data", {"record": record, "verify": verify, "export": export}, argv, _HELP
    )


def record(argv: list[str]) -> int:
    """`hackmatrix data record`."""
    options = parse(
        RecordOptions,
        argv,
        command="hackmatrix data record",
        purpose="Records games of an agent, none of them used in evaluations, as a data set: their "
        "actions and rewards, from which all else can be replayed.",
        example="  hackmatrix data record scripted-games --agent scripted --episodes 10_000",
    )
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.core.version import __version__
    from hackmatrix.research.datasets.folder import DatasetFacts, check_new, new_data_set
    from hackmatrix.research.datasets.record import record as recording_of
    from hackmatrix.research.evaluation.limits import Limits

    check_new(options.out)
    agent = names.resolve(options.agent, options.search, local)
    enable_compilation_cache()
    limits = Limits(options.episodes, options.seed, options.max_steps)
    played = recording_of(agent, options.env, limits, greedy=options.greedy)
    with _end_in_order(), new_data_set(options.out) as writer:
        returns, speed = _write(played.shards, writer, options.json)
        writer.add_facts(
            DatasetFacts(
                played.environment,
                agent.name,
                options.seed,
                options.episodes,
                options.max_steps,
                options.greedy,
                agent.simulations,
                writer.steps,
                __version__,
            )
        )
    size = sum(file.stat().st_size for file in options.out.iterdir())
    summary = {
        "data": str(options.out),
        "environment": played.environment,
        "agent": str(agent),
        "games": options.episodes,
        "steps": writer.steps,
        "mean_return": returns / options.episodes,
        "bytes_per_step": size / writer.steps,
        "steps_per_second": speed,
    }
    if options.json:
        print(json.dumps(summary))
        return 0
    print(
        f"{options.out}: {options.episodes:,} games of {agent}, {writer.steps:,} steps, "
        f"mean return {summary['mean_return']:.3f}, {summary['bytes_per_step']:.2f} bytes a step"
        + (f", {speed:,} steps/s" if speed else "")
    )
    return 0


@contextlib.contextmanager
def _end_in_order() -> Iterator[None]:
    """Context in which SIGTERM and SIGHUP end the command as Ctrl+C does: nothing is left."""

    def end(signum: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001
        raise SystemExit(128 + signum)

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]  # `nohup`
    before = {each: signal.signal(each, end) for each in heard}
    try:
        yield
    finally:
        for sig, handler in before.items():
            signal.signal(sig, handler)


def _write(shards: "Iterable[Shard]", writer: "Writer", quiet: bool) -> tuple[float, int | None]:
    """The sum of the returns, and steps/s of all shards but the first, which is compiled too."""
    returns, began, steps = 0.0, 0.0, 0
    for shard in shards:
        if not writer.games:
            began, steps = time.monotonic(), -len(shard.actions)
        writer.add(shard)
        returns += float(shard.returns().sum())
        _say(quiet, f"{writer.games:,} games, {writer.steps:,} steps")
    steps += writer.steps
    return returns, round(steps / (time.monotonic() - began)) if steps else None


def _say(quiet: bool, text: str) -> None:
    """Progress, where somebody may watch."""
    if not quiet and sys.stderr.isatty():
        print(f"\r{text}", end="\r", file=below(sys.stderr), flush=True)


def verify(argv: list[str]) -> int:
    """`hackmatrix data verify`; the exit code is 1 if a game is another one."""
    options = parse(
        DataVerifyOptions,
        argv,
        command="hackmatrix data verify",
        purpose="Verifies the checksums of a data set, replays its games, and names the first "
        "difference.",
        example="  hackmatrix data verify scripted-games",
    )
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.research.datasets.folder import environment_of, open_data_set
    from hackmatrix.research.datasets.verify import NOTHING, verify

    data = open_data_set(options.data)
    environment = environment_of(data, options.env)
    enable_compilation_cache()
    verdict = NOTHING
    for each in verify(data, environment, oracle=options.oracle):
        verdict = verdict.and_also(each)
        _say(options.json, f"{verdict.games:,} of {data.facts.games:,} games")
    if options.json:
        first = None if verdict.first is None else verdict.first._asdict()
        print(json.dumps({"data": str(options.data), **verdict._asdict(), "first": first}))
    elif verdict.first is None:
        oracle = f", {verdict.oracle_games:,} of them in both engines" * bool(verdict.oracle_games)
        games = f"all {verdict.games:,} games, {verdict.steps:,} steps{oracle}"
        print(f"{options.data}: {games}: as recorded")
    else:
        print(f"{options.data}: {verdict.differing:,} of {verdict.games:,} games differ")
        print(f"first: {verdict.first}")
    return 0 if verdict.first is None else FAILED


def export(argv: list[str]) -> int:
    """`hackmatrix data export`."""
    options = parse(
        DataExportOptions,
        argv,
        command="hackmatrix data export",
        purpose="Writes the first games of a data set for Minari, with their observations.",
        example="  hackmatrix data export scripted-games hackmatrix/scripted-v0 --episodes 100",
    )
    need("minari")
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.integrations.minari_export import MinariLimits
    from hackmatrix.integrations.minari_export import export as exported
    from hackmatrix.research.datasets.folder import environment_of, open_data_set

    data = open_data_set(options.data)
    environment = environment_of(data, options.env)
    enable_compilation_cache()
    limits = MinariLimits(options.episodes, options.max_steps)
    made = exported(data, environment, options.name, options.observation, limits)
    print(
        f"{made.folder}: {made.episodes:,} episodes, {made.steps:,} steps, "
        f"{made.size / made.steps:,.0f} bytes a step"
    )
    print(f"next        minari.load_dataset({options.name!r})")
    return 0
