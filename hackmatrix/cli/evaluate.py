"""`hackmatrix evaluate`: measures how well agents play."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.agents.roster import names
from hackmatrix.cli.arguments import parse
from hackmatrix.cli.buckets import local
from hackmatrix.cli.main import FAILED
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import check_writable
from hackmatrix.core.options import check, option
from hackmatrix.game import native
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.programs import PROGRAM_INDEX
from hackmatrix.learning.settings.config import MAX_SEED

if TYPE_CHECKING:
    from hackmatrix.research.evaluation.contest import Contest, Entrant, SequentialVerdict
    from hackmatrix.research.evaluation.limits import Limits
    from hackmatrix.research.evaluation.ranking import Ranking
    from hackmatrix.research.evaluation.report import Report

DEFAULT_ENV = "HackMatrix"

_EXAMPLE = """\
  hackmatrix evaluate checkpoints/my-run/final_params.npz --episodes 200
      plays 200 games and prints the means with their 95 % intervals
  hackmatrix evaluate checkpoints/my-run scripted --report report.html
      plays the same games with both, prints how they differ and writes a page with plots
  hackmatrix evaluate scripted --forbid RESET,ROW
      plays with and without each of these programs, and without both, to measure their worth"""


@dataclass(frozen=True)
class EvaluateOptions:
    """The command's options."""

    agents: tuple[str, ...] = option(
        (),
        f"each {names.AN_AGENT}. Many agents of one run are ranked; default `shipped`",
        positional=True,
    )
    episodes: int = option(1_000, "number of games", at_least=1, at_most=10_000_000)
    env: str = option(
        DEFAULT_ENV,
        "environment for `random`, or the one of the params if it is code of your own "
        "(module:function), which must be named to run",
    )
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)
    seed: int = option(0, "seed of the games", at_least=0, at_most=MAX_SEED)
    max_steps: int = option(
        2_000, "actions after which a game is truncated", at_least=1, at_most=100_000
    )
    greedy: bool = option(False, "always take the most probable action instead of sampling one")
    forbid: str | None = option(
        None, "programs, separated by commas: the agent plays with and without each of them"
    )
    sequential: str | None = option(
        None,
        "with two agents: stop once they differ significantly in this key of --json, such as "
        "win_rate or mean_return; --episodes is then the most games",
    )
    search: int | None = option(None, names.SEARCH, at_least=1, at_most=names.MAX_SIMULATIONS)
    json: bool = option(False, "print one JSON object")
    report: Path | None = option(None, "write a page with plots to this file (.html)")
    games: Path | None = option(None, "write a row for each game to this file (.csv)")

    def __post_init__(self) -> None:
        check(self)
        names.check_environment(self.agents, self.env)
        if self.forbid is not None and len(self.agents) > 1:
            raise UserError("--forbid goes with one agent")
        if self.sequential is not None and len(self.agents) != 2:
            raise UserError("--sequential goes with two agents")
        forbidden_programs(self.forbid)
        _check_file("--report", self.report, ".html")
        _check_file("--games", self.games, ".csv")


def _check_file(flag: str, file: Path | None, suffix: str) -> None:
    """Checks before any game is played that its results will find a place."""
    if file is None:
        return
    if file.suffix != suffix:
        raise UserError(f"{flag} {file}: must end in {suffix}")
    check_writable(file, f"{flag} {file}")


def forbidden_programs(listed: str | None) -> list[str]:
    """The programs in a list separated by commas, whatever their case.

    Raises:
        UserError: there is no such program.
    """
    programs = [name.strip().upper() for name in listed.split(",")] if listed is not None else []
    for name in programs:
        if name not in PROGRAM_INDEX:
            raise UserError(
                f"--forbid: no program is called {name!r}; there are {', '.join(PROGRAM_INDEX)}"
            )
    return list(dict.fromkeys(programs))


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        EvaluateOptions,
        argv,
        command="hackmatrix evaluate",
        purpose="Measures how well agents play, on games with fixed seeds, never used in training.",
        example=_EXAMPLE,
    )
    given = options.agents or [names.SHIPPED]
    agents = [names.resolve(agent, options.search, local) for agent in given]
    result = _evaluate(agents, options)
    shown = list(map(str, agents))
    if options.json:
        arguments = {name: getattr(options, name) for name in ("seed", "max_steps", "greedy")}
        told = {"agent": shown[0] if len(shown) == 1 else shown, **arguments}
        told["search"] = agents[0].simulations if len(agents) == 1 else options.search
        print(json.dumps(_with_null({**told, **result.as_dict()}), allow_nan=False))
    else:
        greedy = ", greedy" if options.greedy else ""
        played = getattr(result, "entrants", [None])[0]
        number = options.episodes if played is None else played.report.episodes
        games = "" if hasattr(result, "columns") else f", {number:,} games each"
        print(f"{', '.join(shown)}{greedy}, seed {options.seed}{games}")
        print(result.table())
    if (problem := result.problem()) is not None:
        print(f"hackmatrix evaluate: error: {problem}", file=sys.stderr)
        return FAILED
    return 0


def _with_null(value: Any) -> Any:
    """The value with null for numbers that JSON does not have: NaN and infinity."""
    if isinstance(value, dict):
        return {name: _with_null(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_null(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _evaluate(
    agents: Sequence[names.AgentName], options: EvaluateOptions
) -> "Report | Ranking | Contest":
    """The report on the agents' games."""
    from hackmatrix.research.evaluation.agents import SLOWER, plays_on_numpy
    from hackmatrix.research.evaluation.contest import Contest
    from hackmatrix.research.evaluation.game_rows import write_rows
    from hackmatrix.research.evaluation.html_report import write_page
    from hackmatrix.research.evaluation.limits import Limits
    from hackmatrix.runs.params import agent_folders

    on_numpy = [agent for agent in agents if plays_on_numpy(agent, options.env)]
    if on_numpy and not options.json:
        print(f"{', '.join(map(str, on_numpy))}: {SLOWER}", file=sys.stderr)
    if not all(agent in on_numpy or agent.plays_by_rule(options.env) for agent in agents):
        from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache

        enable_compilation_cache()
    if not options.json and (note := native.missing_note()) is not None:
        print(note, file=sys.stderr, flush=True)
    limits = Limits(options.episodes, options.seed, options.max_steps)
    run, alone = agents[0].params, len(agents) == 1 and agents[0].simulations is None
    as_one = options.forbid or options.report or options.games
    if run and alone and not as_one and (found := agent_folders(run)):
        return _ranking(found, limits, options)
    verdict = None
    if options.sequential is None:
        entrants = _entrants(agents, options, limits)
    else:
        entrants, verdict = _play_until_decided(agents, options, limits)
    if options.report is not None:
        write_page(options.report, entrants, options.seed)
    if options.games is not None:
        write_rows(options.games, [(name, report.games) for name, report in entrants])
    return entrants[0].report if len(entrants) == 1 else Contest(entrants, verdict)


def _entrants(
    agents: Sequence[names.AgentName], options: EvaluateOptions, limits: "Limits"
) -> "list[Entrant]":
    """The agents, or the one agent with and without programs, and their reports."""
    from hackmatrix.research.evaluation.agents import agent_player
    from hackmatrix.research.evaluation.contest import Entrant

    programs = forbidden_programs(options.forbid)
    how: dict[str, Any] = {"greedy": options.greedy, "forbids": bool(programs)}
    plays = [agent_player(agent, options.env, limits, **how) for agent in agents]
    if not programs:
        return [Entrant(str(agent), play(())) for agent, play in zip(agents, plays, strict=True)]
    (agent,), (play,) = agents, plays
    trials = {f"without {name}": [name] for name in programs}
    if len(programs) > 1:
        trials["without any of them"] = programs
    entrants = [Entrant(str(agent), play(()))]
    for name, without in trials.items():
        entrants.append(
            Entrant(name, play([FIRST_PROGRAM + PROGRAM_INDEX[each] for each in without]))
        )
    return entrants


def _play_until_decided(
    agents: Sequence[names.AgentName], options: EvaluateOptions, limits: "Limits"
) -> "tuple[list[Entrant], SequentialVerdict]":
    """Two agents, their reports on as many games as it took, and the verdict."""
    from hackmatrix.research.evaluation.agents import agent_player
    from hackmatrix.research.evaluation.contest import Entrant, play_until_decided, portion

    games = portion(limits)
    plays = [agent_player(each, options.env, games, greedy=options.greedy) for each in agents]
    reports, verdict = play_until_decided(plays, limits, options.sequential or "")
    shown = map(str, agents)
    return [Entrant(*each) for each in zip(shown, reports, strict=True)], verdict


def _ranking(folders: Sequence[Path], limits: "Limits", options: EvaluateOptions) -> "Ranking":
    """The agents of a run, ranked."""
    from hackmatrix.agents.networks.policy import load_policy
    from hackmatrix.agents.roster.batch_players import check_env_name
    from hackmatrix.research.evaluation.ranking import RankedAgent, Ranking, reports_on
    from hackmatrix.runs.params import seed_of

    policies = [load_policy(folder) for folder in folders]
    check_env_name(policies[0], options.env)
    reports = reports_on(policies, limits, greedy=options.greedy, env_name=options.env)
    seeds = map(seed_of, folders)
    each = zip(seeds, policies, reports, strict=True)
    return Ranking([RankedAgent(seed, policy.path, report) for seed, policy, report in each])
