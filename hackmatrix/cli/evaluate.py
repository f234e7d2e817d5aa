"""`hackmatrix evaluate`: measures how well an agent plays."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hackmatrix.cli.arguments import parse
from hackmatrix.options import check_ranges, option
from hackmatrix.training.config import MAX_SEED

if TYPE_CHECKING:
    from hackmatrix.agents.environment import Environment
    from hackmatrix.evaluation.report import Report

_EXAMPLE = """\
  hackmatrix evaluate checkpoints/my-run/final_params.npz --episodes 200
      plays 200 games and prints the means with their 95 % intervals"""


@dataclass(frozen=True)
class EvaluateOptions:
    """The command's arguments."""

    agent: str = option(
        dataclasses.MISSING,
        "a file of params, a run's folder, or one of the built-in players: `random` takes "
        "random valid actions, `exit` walks to the exit",
    )
    episodes: int = option(1_000, "games", at_least=1, at_most=10_000_000)
    seed: int = option(0, "another seed, other games", at_least=0, at_most=MAX_SEED)
    max_steps: int = option(2_000, "actions after which a game is cut off", at_least=1)
    greedy: bool = option(False, "take the most probable action instead of sampling")
    json: bool = option(False, "print one JSON object")

    def __post_init__(self) -> None:
        check_ranges(self)


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        EvaluateOptions,
        argv,
        command="hackmatrix evaluate",
        purpose="Plays games with fixed seeds, never seen in training, and says how well.",
        example=_EXAMPLE,
    )
    report = _evaluate(options)
    if options.json:
        arguments = dataclasses.asdict(options)
        arguments = {name: arguments[name] for name in ("agent", "seed", "max_steps", "greedy")}
        print(json.dumps({**arguments, **report.as_dict()}, allow_nan=False))
    else:
        greedy = ", greedy" if options.greedy else ""
        print(f"{options.agent}{greedy}, seed {options.seed}")
        print(report.table())
    return 0


def _evaluate(options: EvaluateOptions) -> "Report":
    import hackmatrix
    from hackmatrix.agents.agent import Agent
    from hackmatrix.agents.policy import load_policy
    from hackmatrix.evaluation.games import Limits, play
    from hackmatrix.evaluation.players import exit_player, policy_player, random_player
    from hackmatrix.evaluation.report import summarise
    from hackmatrix.training.compilation_cache import enable_compilation_cache

    enable_compilation_cache()
    if options.agent in ("random", "exit"):
        env: Environment = hackmatrix.make()
        player = random_player() if options.agent == "random" else exit_player()
    else:
        policy = load_policy(Path(options.agent))
        env = policy.make_environment()
        agent = Agent(env, policy.network)
        player = policy_player(options.agent, agent, policy.params, greedy=options.greedy)
    limits = Limits(options.episodes, options.seed, options.max_steps)
    return summarise(play(env, player, limits))
