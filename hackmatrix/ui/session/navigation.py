"""Where keys lead in the games of a session: along a line, to variations, to moments."""

from collections.abc import Sequence
from itertools import pairwise

from hackmatrix.ui.session.session import Session

_SHOCK = 0.05  # by how much the odds of winning fall at a surprise
_SURE = 0.5  # probability of an action of which the agent is sure


def line(session: Session) -> list[int]:
    """The nodes of the line that is shown: to the position, and on along what was tried first."""
    nodes = session.tree.nodes
    number = session.tree.end(session.at)
    found = [number]
    while (number := nodes[number].parent) >= 0:
        found.append(number)
    return found[::-1]


def variation(session: Session, by: int) -> int:
    """The node as far into the next variation, or the one before; its end if it begins later."""
    nodes = session.tree.nodes
    main = session.tree.end(0)
    ends = [main, *(n.index for n in nodes if not n.children and n.index != main)]
    end = ends[(ends.index(line(session)[-1]) + by) % len(ends)]
    number = end
    while nodes[number].step > nodes[session.at].step:
        number = nodes[number].parent
    return end if number == session.at else number


def surprises(session: Session) -> list[int]:
    """The nodes of the line after which the odds of winning fell, the farthest fall first."""
    odds = session.odds
    falls = [
        (odds[before].win - odds[after].win, before)
        for before, after in pairwise(line(session))
        if before in odds and after in odds
    ]
    shocks = [(fall, node) for fall, node in falls if fall >= _SHOCK]
    return [node for _, node in sorted(shocks, key=lambda shock: (-shock[0], shock[1]))]


def surprise(session: Session) -> int | None:
    """The next surprise by rank after the one that is shown, else the greatest."""
    ranked = surprises(session)
    if session.at not in ranked:
        return ranked[0] if ranked else None
    return ranked[(ranked.index(session.at) + 1) % len(ranked)]


def unsure(session: Session) -> int | None:
    """The next node of the line where no action has half of the probability."""
    known = session.opinions
    places = [
        i for i, n in enumerate(line(session)) if n in known and max(known[n].probabilities) < _SURE
    ]
    return _next(session, places)


def _next(session: Session, steps: Sequence[int]) -> int | None:
    """The node at the first of these steps of the line after the shown one, else at the first."""
    now = session.tree.nodes[session.at].step
    later = [place for place in steps if place > now] or steps
    return line(session)[later[0]] if later else None
