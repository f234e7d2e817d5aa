"""`hackmatrix analyse`: how a network, and a search with it, evaluate a position."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.agents.roster.names import A_NETWORK, MAX_SIMULATIONS, resolve
from hackmatrix.cli.arguments import parse
from hackmatrix.cli.buckets import local
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.text import summary
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.learning.settings.config import MAX_SEED

if TYPE_CHECKING:
    from hackmatrix.agents.search.analysis import Analysis, SearchedAction

SIMULATIONS = 128

_EXAMPLE = """\
  hackmatrix analyse position.txt checkpoints/my-run
      shows each action's probability by the network, and its value by 128 simulations"""


@dataclass(frozen=True)
class AnalyseOptions:
    """The command's options."""

    position: Path = option(dataclasses.MISSING, "a file with a position in text")
    agent: str = option(dataclasses.MISSING, f"{A_NETWORK}; NAME@N searches with N simulations")
    search: int | None = option(
        None,
        f"simulations, as in NAME@N; default {SIMULATIONS}",
        at_least=1,
        at_most=MAX_SIMULATIONS,
    )
    seed: int = option(0, "seed of the games that the search samples", at_least=0, at_most=MAX_SEED)
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)
    json: bool = option(False, "print one JSON object")

    def __post_init__(self) -> None:
        check(self)


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        AnalyseOptions,
        argv,
        command="hackmatrix analyse",
        purpose="Shows how a network, and a search with it, evaluate a position.",
        example=_EXAMPLE,
    )
    game = _game(options.position)
    agent = resolve(options.agent, options.search, local)
    if agent.params is None:
        raise UserError(f"{agent} has no network to search with")

    from hackmatrix.agents.networks.policy import load_policy
    from hackmatrix.agents.search.analysis import Analyst
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache

    enable_compilation_cache()
    analyst = Analyst(load_policy(agent.params), agent.simulations or SIMULATIONS)
    analysis = analyst.analyse(game, options.seed)
    print(json.dumps(_as_dict(analysis)) if options.json else _text(game, analysis))
    return 0


def _game(path: Path) -> Game:
    """The running game in a file.

    Raises:
        UserError: there is no such file, or it holds no position or one without a valid action.
    """
    try:
        game = Game.from_text(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is no text") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    if not game.valid_actions():
        raise UserError(f"{path}: the game is over, or no action is valid")
    return game


def _as_dict(analysis: "Analysis") -> dict[str, Any]:
    return {
        "value": analysis.value,
        "network": ACTION_NAMES[analysis.network],
        "search": ACTION_NAMES[analysis.search],
        "actions": [
            {**choice._asdict(), "action": ACTION_NAMES[choice.action], "line": _names(choice)}
            for choice in analysis.choices
        ],
    }


def _names(choice: "SearchedAction") -> list[str]:
    return [ACTION_NAMES[action] for action in choice.line]


def _text(game: Game, analysis: "Analysis") -> str:
    lines = [
        summary(game.state),
        "",
        f"network: {ACTION_NAMES[analysis.network]}, expects {analysis.value:.2f}",
        f"search:  {ACTION_NAMES[analysis.search]}",
        "",
        "action   prior  visits   value  line",
    ]
    for choice in analysis.choices:
        value = "      -" if choice.value is None else f"{choice.value:7.2f}"
        name, line = ACTION_NAMES[choice.action], " ".join(_names(choice))
        lines.append(f"{name:<7} {choice.prior:6.1%} {choice.visits:7} {value}  {line}")
    return "\n".join(lines)
