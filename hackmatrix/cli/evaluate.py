"""`hackmatrix evaluate`: measures how well an agent plays."""

import dataclasses
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hackmatrix.cli.arguments import parse
from hackmatrix.cli.main import FAILED
from hackmatrix.errors import UserError
from hackmatrix.options import check, option
from hackmatrix.settings.config import MAX_SEED

if TYPE_CHECKING:
    from hackmatrix.evaluation.ranking import Ranking
    from hackmatrix.evaluation.report import Report

DEFAULT_ENV = "HackMatrix"
BUILT_IN = ("random", "exit")

_EXAMPLE = """\
  hackmatrix evaluate checkpoints/my-run/final_params.npz --episodes 200
      plays 200 games and prints the means with their 95 % intervals"""


@dataclass(frozen=True)
class EvaluateOptions:
    """The command's options."""

    agent: str = option(
        dataclasses.MISSING,
        "a file of params, a run's folder (its agents are ranked, if it has many), or one of the "
        "built-in players: `random` takes random valid actions, `exit` walks to the exit",
    )
    episodes: int = option(1_000, "number of games", at_least=1, at_most=10_000_000)
    env: str = option(DEFAULT_ENV, "environment that `random` plays; params know theirs")
    seed: int = option(0, "seed of the games", at_least=0, at_most=MAX_SEED)
    max_steps: int = option(2_000, "actions after which a game is truncated", at_least=1)
    greedy: bool = option(False, "always take the most probable action instead of sampling one")
    search: int | None = option(
        None,
        "simulations of a tree search before each action, with the agent's network",
        at_least=1,
    )
    json: bool = option(False, "print one JSON object")

    def __post_init__(self) -> None:
        check(self)
        if self.agent != "random" and self.env != DEFAULT_ENV:
            raise UserError(
                f"--env {self.env} goes with `random` alone: `exit` plays HackMatrix, and params "
                "play what they were trained on"
            )
        if self.search and (self.greedy or self.agent in BUILT_IN):
            raise UserError("--search goes with params, and without --greedy")


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        EvaluateOptions,
        argv,
        command="hackmatrix evaluate",
        purpose="Plays games with fixed seeds, never used in training, and reports how well.",
        example=_EXAMPLE,
    )
    result = _evaluate(options)
    if options.json:
        arguments = dataclasses.asdict(options)
        arguments = {
            name: arguments[name] for name in ("agent", "seed", "max_steps", "greedy", "search")
        }
        print(json.dumps(_with_null({**arguments, **result.as_dict()}), allow_nan=False))
    else:
        greedy = ", greedy" if options.greedy else ""
        greedy = f", {options.search} simulations" if options.search else greedy
        games = f", {options.episodes:,} games each" if hasattr(result, "agents") else ""
        print(f"{options.agent}{greedy}, seed {options.seed}{games}")
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


def _evaluate(options: EvaluateOptions) -> "Report | Ranking":
    from hackmatrix.agents.policy import load_policy
    from hackmatrix.environments.registry import make_environment
    from hackmatrix.evaluation.games import Limits, play
    from hackmatrix.evaluation.players import exit_player, random_player, search_player
    from hackmatrix.evaluation.ranking import Agent, Ranking, reports_on
    from hackmatrix.evaluation.report import report_on
    from hackmatrix.runs.params import agent_folders, seed_of
    from hackmatrix.search.model import Searcher
    from hackmatrix.storage.compilation_cache import enable_compilation_cache

    enable_compilation_cache()
    limits = Limits(options.episodes, options.seed, options.max_steps)
    if options.agent in BUILT_IN:
        env = make_environment(options.env)
        player = random_player() if options.agent == "random" else exit_player()
        return report_on(env, play(env, player, limits))
    path = Path(options.agent)
    if options.search is not None:
        policy = load_policy(path)
        searcher = Searcher.of(policy, options.search)
        player = search_player(options.agent, searcher, policy.params)
        env = make_environment(policy.environment, policy.observation)
        return report_on(env, play(env, player, limits))
    folders = agent_folders(path)
    policies = [load_policy(folder) for folder in folders or [path]]
    reports = reports_on(policies, limits, greedy=options.greedy)
    if not folders:
        return reports[0]
    seeds = map(seed_of, folders)
    each = zip(seeds, policies, reports, strict=True)
    return Ranking([Agent(seed, policy.path, report) for seed, policy, report in each])
