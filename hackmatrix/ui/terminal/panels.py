"""The texts around the board in a terminal: one for each panel."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.text import Text

from hackmatrix.agents.roster.judge import Odds
from hackmatrix.game.drawing.theme import COLOURS
from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.ui.session import navigation as travel
from hackmatrix.ui.session.descriptions import PROGRAM_KEYS, PROGRAM_WORDS
from hackmatrix.ui.session.session import Session
from hackmatrix.ui.terminal.screen_text import best

_SIGNS = "▁▂▃▄▅▆▇█"
_BAR = 16  # characters of a probability of 1
_SHOWN = 0.005  # the least probability of a suggestion


def suggestions(agent: dict[str, Any] | None, odds: Odds | None) -> Text:
    """The odds or the agent's numbers in the first line; then its suggestions, the best first."""
    if agent is None:
        return Text("the game is over", COLOURS["label"])
    value = "" if agent["value"] is None else f"value {agent['value']:.2f}   "
    learned = f"{value}entropy {agent['entropy']:.2f}"
    expected = odds and f"shipped wins {100 * odds.win:.0f} %   clears {odds.stages:.1f} stages"
    text = Text(expected or learned, COLOURS["label"])
    for i, (action, p) in enumerate(best(agent["probabilities"]), 1):
        if i > 1 and p < _SHOWN:
            break
        is_next = action == agent["suggests"]
        text.append(f"\n{i} {ACTION_NAMES[action]:<7}{100 * p:4.0f} % ", "bold" if is_next else "")
        text.append("█" * max(1, round(_BAR * p)), COLOURS["siphon" if is_next else "label"])
    return text


def opinions(others: Sequence[Any]) -> Text:
    """The choices of all agents, an agent a line."""
    lines = [
        f"{name}: {ACTION_NAMES[action]} {100 * p:.0f} %"
        + ("" if value is None else f", value {value:.2f}")
        for name, action, p, value in others
    ]
    return Text("\n".join(lines))


def programs(owned: Sequence[str], actions: Sequence[dict[str, Any]]) -> Text:
    """The programs that are owned, a line each: key, cost, what it does; dim if not possible."""
    lines = []
    for number, program in enumerate(PROGRAMS):
        if program.name not in owned:
            continue
        why = actions[FIRST_PROGRAM + number].get("why")
        costs = [(program.credits, "$"), (program.energy, "~")]
        cost = " ".join(f"{sign}{cost}" for cost, sign in costs if cost)
        head = f"{PROGRAM_KEYS[program.name].upper()} {program.name:<6} {cost:<6}"
        line = Text().append(head, COLOURS["label"] if why else "bold")
        lines.append(line.append(f" {why or PROGRAM_WORDS[program.name][0]}", COLOURS["label"]))
    return Text("\n").join(lines or [Text("none yet: siphon a program block", COLOURS["label"])])


def last_step(last: dict[str, Any] | None) -> Text:
    """The reward of the last action and its parts."""
    if last is None:
        return Text()
    text = Text(f"{ACTION_NAMES[last['action']]} by {last['by']}: {last['reward']:+.3g}")
    for name, part in last["parts"].items():
        text.append(f"\n{name.replace('_', ' ')} {part:+.3g}", COLOURS["label"])
    return text


def course(session: Session, width: int, *, short: bool = False) -> Text:
    """The course of the line that is shown, with the step that is shown in reverse.

    It is the chance of winning from 0 to 1 where it is known, else the return, and beside it the
    value.

    Args:
        session: its game.
        width: in characters.
        short: one line alone, the last.
    """
    line, nodes = travel.line(session), session.tree.nodes
    curves: dict[str, list[float | None]] = {"return": [nodes[n].total for n in line]}
    odds, known = session.odds, session.opinions
    if odds:
        curves = {"wins": [odds[n].win if n in odds else None for n in line]}
    elif session.controls:
        curves["value"] = [known[n].value if n in known else None for n in line]
    last = max(len(line) - 1, 1)
    width = max(width, 2)
    positions = [min(round(x * last / (width - 1)), len(line) - 1) for x in range(width)]
    here = round(nodes[session.at].step * (width - 1) / last)
    text, legend = Text(no_wrap=True), Text(f"step {nodes[session.at].step} of {len(line) - 1}")
    for name, values in list(curves.items())[-1 if short else 0 :]:
        colour = COLOURS["credits" if name == "return" else "siphon"]
        known_values = [value for value in values if value is not None] or [0.0]
        low, high = (0.0, 1.0) if name == "wins" else (min(known_values), max(known_values))
        for x, sign in enumerate(_curve(values, positions, low, high)):
            text.append(sign, f"{colour} reverse" if x == here else colour)
        text.append("" if short else "\n")
        legend.append(f"   {name}", colour)
    return text if short else text.append(legend)


def _curve(
    values: Sequence[float | None], positions: Sequence[int], low: float, high: float
) -> Iterator[str]:
    """Signs as high as the values at these places, from the lowest sign to the highest."""
    for place in positions:
        value = values[place]
        share = 0.0 if value is None else (value - low) / ((high - low) or 1)
        yield " " if value is None else _SIGNS[round(share * (len(_SIGNS) - 1))]
