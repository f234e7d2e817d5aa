"""`hackmatrix evaluate`: measures how well agents play."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hackmatrix.cli.arguments import parse
from hackmatrix.cli.buckets import local
from hackmatrix.cli.main import FAILED
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option
from hackmatrix.environments.registry import own_code
from hackmatrix.game.rules.actions import FIRST_PROGRAM
from hackmatrix.game.rules.programs import NUMBER
from hackmatrix.learning.settings.config import MAX_SEED, MAX_SIMULATIONS

if TYPE_CHECKING:
    from hackmatrix.research.evaluation.contest import Contest, Entrant
    from hackmatrix.research.evaluation.games import Limits
    from hackmatrix.research.evaluation.ranking import Ranking
    from hackmatrix.research.evaluation.report import Report

DEFAULT_ENV = "HackMatrix"

_EXAMPLE = """\
  hackmatrix evaluate checkpoints/my-run/final_params.npz --episodes 200
      plays 200 games and prints the means with their 95 % intervals
  hackmatrix evaluate checkpoints/my-run scripted --report report.html
      plays the same games with both, prints how they differ and writes a page with plots
  hackmatrix evaluate scripted --forbid RESET,ROW
      plays with and without each of these programs, and without both: what each is worth"""


@dataclass(frozen=True)
class EvaluateOptions:
    """The command's options."""

    agents: tuple[str, ...] = option(
        (),
        "files of params, runs' folders (the agents of one run are ranked, if it has many), here "
        "or as gs://..., or "
        "built-in players: `random` takes random valid actions, `exit` walks to the exit, "
        "`scripted` plays well by rules of thumb; the agent of this package, if none is named",
        positional=True,
    )
    episodes: int = option(1_000, "number of games", at_least=1, at_most=10_000_000)
    env: str = option(
        DEFAULT_ENV,
        "environment that `random` plays; params know theirs, but play code of your own "
        "(module:function) only if it is named here too",
    )
    seed: int = option(0, "seed of the games", at_least=0, at_most=MAX_SEED)
    max_steps: int = option(
        2_000, "actions after which a game is truncated", at_least=1, at_most=100_000
    )
    greedy: bool = option(False, "always take the most probable action instead of sampling one")
    forbid: str | None = option(
        None, "programs, separated by commas: the agent plays with and without each of them"
    )
    search: int | None = option(
        None,
        "simulations of a tree search before each action, with the agent's network",
        at_least=1,
        at_most=MAX_SIMULATIONS,
    )
    json: bool = option(False, "print one JSON object")
    report: Path | None = option(None, "write a page with plots to this file (.html)")

    def __post_init__(self) -> None:
        check(self)
        if self.env != DEFAULT_ENV and not played_by(self.agents, self.env):
            raise UserError(
                f"--env {self.env} goes with `random` alone, or with params of an environment of "
                "your own: other built-in players play HackMatrix, other params what they know"
            )
        if self.forbid is not None and len(self.agents) > 1:
            raise UserError("--forbid goes with one agent")
        forbidden_programs(self.forbid)
        if self.search and (self.greedy or self.forbid):
            raise UserError("--search goes without --greedy and --forbid")
        if self.report is not None and self.report.suffix != ".html":
            raise UserError(f"--report {self.report}: must end in .html")
        if self.report is not None and not self.report.parent.is_dir():
            raise UserError(f"--report {self.report}: there is no folder {self.report.parent}")


def played_by(agents: Sequence[str], env: str) -> bool:
    """Whether agents may play an environment that the user names: `random`, and with code params.

    Params name their environment, but none of its code is run that the user has not named too.
    """
    if not own_code(env):
        return list(agents) == ["random"]
    return bool(agents) and not {"exit", "scripted", "shipped"} & set(agents)


def forbidden_programs(listed: str | None) -> list[str]:
    """The programs in a list separated by commas, whatever their case.

    Raises:
        UserError: there is no such program.
    """
    names = [name.strip().upper() for name in listed.split(",")] if listed is not None else []
    for name in names:
        if name not in NUMBER:
            raise UserError(
                f"--forbid: no program is called {name!r}; there are {', '.join(NUMBER)}"
            )
    return list(dict.fromkeys(names))


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        EvaluateOptions,
        argv,
        command="hackmatrix evaluate",
        purpose="Plays games with fixed seeds, never used in training, and reports how well.",
        example=_EXAMPLE,
    )
    agents, result = _evaluate(options)
    if options.json:
        arguments = {
            name: getattr(options, name) for name in ("seed", "max_steps", "greedy", "search")
        }
        told = {"agent": agents[0] if len(agents) == 1 else agents, **arguments}
        print(json.dumps(_with_null({**told, **result.as_dict()}), allow_nan=False))
    else:
        greedy = ", greedy" if options.greedy else ""
        greedy = f", {options.search} simulations" if options.search else greedy
        games = "" if hasattr(result, "columns") else f", {options.episodes:,} games each"
        print(f"{', '.join(agents)}{greedy}, seed {options.seed}{games}")
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


def _evaluate(options: EvaluateOptions) -> "tuple[Sequence[str], Report | Ranking | Contest]":
    """The names of the agents, and what their games say."""
    from hackmatrix.agents import shipped
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.research.evaluation.contest import Contest
    from hackmatrix.research.evaluation.games import Limits
    from hackmatrix.research.evaluation.html_report import write_page
    from hackmatrix.runs.params import agent_folders

    enable_compilation_cache()
    limits = Limits(options.episodes, options.seed, options.max_steps)
    agents = [local(agent) for agent in options.agents] or [str(shipped.PARAMS)]
    for agent in agents:
        folders = agent_folders(Path(agent))
        alone = len(agents) == 1 and not (options.forbid or options.report or options.search)
        if folders and alone:
            return agents, _ranking(folders, limits, options)
        if folders:
            raise UserError(f"{agent}: has {len(folders)} agents: choose one, such as {folders[0]}")
    entrants = _entrants(agents, options, limits)
    if options.report is not None:
        write_page(options.report, entrants, options.seed)
    return agents, entrants[0].report if len(entrants) == 1 else Contest(entrants)


def _entrants(agents: Sequence[str], options: EvaluateOptions, limits: "Limits") -> "list[Entrant]":
    """The agents, or the one agent with and without programs, and their reports."""
    from hackmatrix.research.evaluation.agents import agent_player
    from hackmatrix.research.evaluation.contest import Entrant

    programs = forbidden_programs(options.forbid)
    how: dict[str, Any] = {"greedy": options.greedy, "search": options.search}
    plays = [
        agent_player(agent, options.env, limits, **how, forbids=bool(programs)) for agent in agents
    ]
    if not programs:
        return [Entrant(agent, play(())) for agent, play in zip(agents, plays, strict=True)]
    (agent,), (play,) = agents, plays
    trials = {f"without {name}": [name] for name in programs}
    if len(programs) > 1:
        trials["without any of them"] = programs
    entrants = [Entrant(agent, play(()))]
    for name, without in trials.items():
        entrants.append(Entrant(name, play([FIRST_PROGRAM + NUMBER[each] for each in without])))
    return entrants


def _ranking(folders: Sequence[Path], limits: "Limits", options: EvaluateOptions) -> "Ranking":
    """The agents of a run, ranked."""
    from hackmatrix.agents.networks.policy import load_policy
    from hackmatrix.research.evaluation.agents import check_environment_of
    from hackmatrix.research.evaluation.ranking import Agent, Ranking, reports_on
    from hackmatrix.runs.params import seed_of

    policies = [load_policy(folder) for folder in folders]
    check_environment_of(policies[0], options.env)
    reports = reports_on(policies, limits, greedy=options.greedy, given=options.env)
    seeds = map(seed_of, folders)
    each = zip(seeds, policies, reports, strict=True)
    return Ranking([Agent(seed, policy.path, report) for seed, policy, report in each])
