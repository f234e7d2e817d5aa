"""The scripted player."""

from collections.abc import Collection
from functools import lru_cache
from math import log1p
from typing import NamedTuple

from hackmatrix.players.cells import ALL, BIT, NEXT_TO, NO_PATH, RAY, distances, members, neighbours
from hackmatrix.players.imagine import enemy_turn, fights, investments, moves
from hackmatrix.players.view import View, view_of
from hackmatrix.players.weights import TUNED, Weights
from hackmatrix.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.rules.board import CROSS, Content
from hackmatrix.rules.programs import PROGRAMS, ProgramId
from hackmatrix.rules.stages import MAX_HP

_UNDO = FIRST_PROGRAM + ProgramId.UNDO


def choose(record: bytes, w: Weights = TUNED) -> int:
    return best_action(view_of(record), w)


class Plan(NamedTuple):
    to_goal: tuple[int, ...]  # walking distance of each cell to the goal
    worth: float  # of the goal, beyond that of leaving
    


def best_action(
    view: View, w: Weights = TUNED, forbidden: Collection[int] = frozenset()
) -> int:
    plan = make_plan(view, w)
    move, action = best_move(view, plan, w, forbidden)
    best = move
    now = holdings(view, w)
    for program, after in investments(view):
        worth = move + holdings(after, w) - now - w.program
        if worth > best and program not in forbidden:
            best, action = worth, program
    for program, after in fights(view) if view.enemies else ():
        worth = best_move(after, plan, w, forbidden)[0] - w.program
        if worth > best and program not in forbidden:
            best, action = worth, program
    return action


def best_move(
    view: View, plan: Plan, w: Weights, forbidden: Collection[int] = frozenset()
) -> tuple[float, int]:
    return max(
        (
            (score(view, after, plan, w), action)
            for action, after in moves(view)
            if action not in forbidden
        ),
        default=(-1000.0, 0),
    )


def score(before: View, after: View, plan: Plan, w: Weights, depth: int = 1) -> float:
    if after.cell == after.board.exit and before.cell != after.cell:
        left = len(after.enemies) + after.transmissions.bit_count()
        healed = after._replace(hp=min(after.hp + 1, MAX_HP))
        return holdings(healed, w) + w.leave - w.left * left - plan.worth
    coming = enemy_turn(after).view
    value = holdings(after, w) + hp_worth(coming.hp, w) - hp_worth(after.hp, w)
    value -= w.way * plan.to_goal[after.cell]
    value += standing(coming, w)
    if depth == 0 or coming.hp == 0 or not coming.enemies or w.deep == 0:
        return value
    later = max((score(coming, then, plan, w, depth - 1) for _, then in moves(coming)), default=-100.)
    return value + w.deep * (later - value)


def hp_worth(hp: int, w: Weights) -> float:
    return (0.0, w.hp1, w.hp1 + w.hp2, w.hp1 + w.hp2 + w.hp3)[hp]


def holdings(view: View, w: Weights) -> float:
    worth = hp_worth(view.hp, w)
    worth += w.credit * hoard(view.credits, w.enough) + w.energy * hoard(view.energy, w.enough)
    worth += w.siphon * view.siphons + w.attack * (1 - 0.4 ** (view.attack - 1)) - w.spawn * view.pending
    worth += w.calm * view.calm + w.show * view.show
    worth += programs_worth(view.owned, w) * future(view.stage, w)
    for enemy in view.enemies:
        worth -= w.enemy + w.enemy_hp * enemy.hp
    transmissions = view.transmissions.bit_count()
    crowd = len(view.enemies) + transmissions + view.pending
    worth -= w.crowd * crowd * crowd
    return worth - w.transmission * transmissions - w.landing * view.landing.bit_count()


@lru_cache(10000)
def hoard(amount: int, enough: float) -> float:
    return enough * log1p(amount / enough)


def future(stage: int, w: Weights) -> float:
    return 1.0 - w.fade * (stage - 1) / 7


@lru_cache(10000)
def programs_worth(owned: int, w: Weights) -> float:
    return sum(w.programs[p] for p in members(owned))


def standing(view: View, w: Weights) -> float:
    """How good the cell is to stand on."""
    value = 0.0
    if view.enemies or view.transmissions:
        pieces = view.transmissions
        for enemy in view.enemies:
            pieces |= BIT[enemy.cell]
        lines = 0
        stops = pieces | view.board.blocks
        for ray in RAY[view.cell]:
            for cell in ray:
                if stops >> cell & 1:
                    lines += pieces >> cell & 1
                    break
        beside = NEXT_TO[view.cell]
        two = neighbours(beside) & ~beside
        value += w.fire * lines
        value -= w.close * (beside & pieces).bit_count()
        value -= w.near * (two & pieces).bit_count()
        value -= w.open * (beside & ~view.board.blocks).bit_count()
    if view.last_seen:
        beside = NEXT_TO[view.cell]
        value -= w.ghost * bool(view.last_seen & beside) + w.ghost2 * bool(view.last_seen & neighbours(beside))
    return value


def make_plan(view: View, w: Weights) -> Plan:
    free = ALL & ~view.board.blocks
    exit = BIT[view.board.exit]
    reach = distances(view.cell, free & ~exit)
    best, goal = 0.0, view.board.exit
    for cell in members(view.board.data_siphons):
        worth = w.fetch - w.far * reach[cell]
        if worth > best:
            best, goal = worth, cell
    if view.siphons:
        gains = cell_gains(view, w)
        spawns = {cell: block.spawn for cell, block in view.board.unsiphoned.items()}
        for cell in members(free & ~exit):
            if reach[cell] < NO_PATH:
                worth = sum(gains[c] for c in CROSS[cell]) - w.siphon - w.far * reach[cell]
                crowd = sum(spawns.get(c, 0) for c in CROSS[cell])
                worth -= w.crowd * crowd * crowd
                if worth > best:
                    best, goal = worth, cell
    walk = free if goal == view.board.exit else free & ~exit
    return Plan(distances(goal, walk), best)


def cell_gains(view: View, w: Weights) -> list[float]:
    gains = [0.0] * 36
    credit = w.credit / (1 + view.credits / w.enough)
    more = w.energy / (1 + view.energy / w.enough)
    fade = future(view.stage, w)
    for cell, (credits, energy) in view.board.resources.items():
        gains[cell] = credit * credits + more * energy
    for cell, block in view.board.unsiphoned.items():
        worth = -w.spawn * block.spawn
        if block.content == Content.PROGRAM and not view.owned >> block.value & 1:
            worth += w.programs[block.value] * fade
        if block.content == Content.QUESTION:
            worth -= w.question
        gains[cell] = worth
    return gains
