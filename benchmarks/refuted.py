"""Positions in which a search differs most from the network that it searches with."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import run_command
from hackmatrix.agents import shipped
from hackmatrix.agents.networks.policy import Policy, load_policy
from hackmatrix.agents.roster.batch_players import network_player
from hackmatrix.agents.search.analysis import Analysis, Analyst, Choice
from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.options import option
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.text import summary
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.research.bench.options import Options
from hackmatrix.research.evaluation.games import Games, Limits


@dataclass(frozen=True)
class RefutedOptions(Options):
    """The command's options."""

    agent: Path = option(shipped.PARAMS, "a file of params; the package's agent, if none is named")
    games: int = option(30, "games that the network plays alone", at_least=1)
    seed: int = option(20, "seed of the games", at_least=0)
    every: int = option(5, "of so many positions one is searched", at_least=1)
    simulations: int = option(256, "simulations", at_least=1)
    show: int = option(6, "positions to show, at most one of a game", at_least=1)


class Refuted(NamedTuple):
    """A position, and what is thought of it."""

    position: str
    analysis: Analysis
    gain: float  # of the search's action over the network's favourite, by the search's values

    def as_dict(self) -> dict[str, Any]:
        """The position, and both actions with their lines."""
        favourite, best = _both(self.analysis)
        return {
            "position": self.position,
            "gain": self.gain,
            "network": _told(favourite),
            "search": _told(best),
        }

    def text(self) -> str:
        """The position and the lines of both."""
        favourite, best = _both(self.analysis)
        return f"{self.position}\n\nnetwork {_line(favourite)}\nsearch  {_line(best)}"


class Positions(NamedTuple):
    """The positions with the largest gains."""

    searched: int
    differing: int
    shown: list[Refuted]

    def as_dict(self) -> dict[str, Any]:
        """The figures and the positions."""
        shown = [refuted.as_dict() for refuted in self.shown]
        return {"searched": self.searched, "differing": self.differing, "shown": shown}

    def text(self) -> str:
        """The same for people."""
        head = f"{self.searched:,} positions, another action in {self.differing:,} of them"
        return "\n\n".join([head, *(refuted.text() for refuted in self.shown)])


def measure(options: RefutedOptions) -> Positions:
    """Searches positions of games that the network plays alone."""
    enable_compilation_cache()
    policy = load_policy(options.agent)
    analyst = Analyst(policy, options.simulations)
    searched, differing, best = 0, 0, dict[int, Refuted]()
    for number, game in _positions(policy, options):
        searched += 1
        analysis = analyst.analyse(game)
        if analysis.search == analysis.network:
            continue
        differing += 1
        favourite, choice = _both(analysis)
        gain = (choice.value or 0) - (favourite.value or 0)
        if number not in best or gain > best[number].gain:
            best[number] = Refuted(summary(game.state), analysis, gain)
    largest = sorted(best.values(), key=lambda refuted: -refuted.gain)
    return Positions(searched, differing, largest[: options.show])


def _positions(policy: Policy, options: RefutedOptions) -> Iterator[tuple[int, Game]]:
    """Positions of the games, with the game's number."""
    env, network = policy.make()
    player = network_player("network", network, policy.params, greedy=False)
    limits = Limits(options.games, options.seed, 1_000)
    played = Games(env, player, limits, record=True).play_recorded(policy.params)
    for number, taken in enumerate(played.actions_of_each()):
        game = Game.new(EVALUATION_STREAM + options.seed, number)
        for time, action in enumerate(taken):
            if time % options.every == 0:
                yield number, game
            game.step(action)


def _both(analysis: Analysis) -> tuple[Choice, Choice]:
    """The network's favourite, and the search's choice."""
    (best,) = (choice for choice in analysis.choices if choice.action == analysis.search)
    return analysis.choices[0], best


def _told(choice: Choice) -> dict[str, Any]:
    return choice._asdict() | {"line": [ACTION_NAMES[action] for action in choice.line]}


def _line(choice: Choice) -> str:
    line = " ".join(ACTION_NAMES[action] for action in choice.line)
    value = float("nan") if choice.value is None else choice.value
    return f"{choice.prior:6.1%} {choice.visits:4} {value:6.2f}  {line}"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "refuted",
        measure,
        RefutedOptions,
        argv,
        purpose="Shows positions in which a search refutes the network's favourite action.",
        example="--games 30 --show 6",
    )


if __name__ == "__main__":
    sys.exit(main())
