"""Dice that return the recorded outcomes.

They only pick among the options that the engine offers, so an outcome that the engine cannot
produce is refused; and every choice they make is checked by the comparison afterwards.
"""

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

from hackmatrix.game.conformance.frequencies import COVER, Draw
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.stage import is_valid_layout
from hackmatrix.game.engine.state import Enemy, State, Transmission
from hackmatrix.game.rules.board import CELLS, CORNERS, SIZE, Content, col, row
from hackmatrix.game.rules.chance import LAYOUT_STRIDE, Site
from hackmatrix.game.rules.enemies import MAX_ENEMIES, MAX_HP, EnemyType
from hackmatrix.game.rules.stages import LAYOUT_TRIES

_T = TypeVar("_T")
NEGLIGIBLE = 1e-6  # probability of events that no recording contains
_SAMPLES = 500  # random layouts to estimate the share of invalid ones


class ImpossibleOutcome(Exception):
    """The recording contains a random outcome that the engine cannot produce."""

    def __init__(self, site: Site, why: str) -> None:
        super().__init__(f"{site.name.lower()}: {why}")

    @classmethod
    def among(cls, site: Site, wanted: Any, allowed: Sequence[Any]) -> Self:
        """The error for a recorded outcome that is not among the engine's options."""
        options = ", ".join(_format(site, option) for option in dict.fromkeys(allowed))
        return cls(site, f"recorded {_format(site, wanted)}, possible {options}")


class RecordedDice(Dice):
    """Dice for one recorded step, which return the recorded outcomes.

    Args:
        state: the state before the step; its dice are replaced by these.
        recorded: the state after the step.
        order: the recorded order of the enemies, for each sub-step.

    Attributes:
        draws: the outcomes so far that the recording determines.
    """

    order_stride = MAX_ENEMIES  # between the indices of ENEMY_ORDER of the two sub-steps

    def __init__(self, state: State, recorded: State, order: Sequence[Sequence[int]] = ()) -> None:
        super().__init__(stream=0, episode=0)
        state.dice = self
        self.state = state
        self.enemies = list(state.enemies)
        self.recorded = recorded
        self.order = order
        self.layout = [i for i, cell in enumerate(recorded.cells) if cell.is_block]
        self.draws: list[Draw] = []
        self.is_known = True  # whether the recording determines the last outcome

    def choose(self, site: Site, options: Sequence[_T], index: int = 0) -> _T:
        """Returns the recorded option.

        Raises:
            ImpossibleOutcome: it is not among the options.
        """
        self.is_known = True
        wanted: _T = _TELL[site](self, options, index)
        if wanted not in options:
            raise ImpossibleOutcome.among(site, wanted, options)
        if self.is_known and len(options) > 1:
            self.draws += self._draws(site, options, options.index(wanted))
        return wanted

    def _draws(self, site: Site, options: Sequence[Any], drawn: int) -> Iterator[Draw]:
        """The outcome as draws whose kinds are frequent enough to be counted."""
        views: dict[str, Iterable[Hashable]] = {site.name.lower(): options}
        if site == Site.SPAWN_CELL:
            here = self.state.player.cell
            places = ((row(cell) - row(here), col(cell) - col(here)) for cell in options)
            covers = (cover(self.state, cell) for cell in options)
            views = {"spawn_cell": places, COVER: covers}
        elif site == Site.ENEMY_ORDER:
            views = {"enemy_order": ((len(options), place) for place in range(len(options)))}
        for name, view in views.items():
            kinds = tuple(view)
            yield Draw(name, kinds[drawn], kinds)

    def _arbitrary(self, outcome: _T) -> _T:
        """Marks an outcome that the recording does not determine, or not alone."""
        self.is_known = False
        return outcome

    # --- a stage begins --------------------------------------------------------------------------

    def _exit_corner(self, _options: Sequence[int], _index: int) -> int:
        return self.recorded.exit

    def _block_count(self, options: Sequence[int], _index: int) -> int:
        if not self.layout:
            self.layout = self._arbitrary(self._invalid_layout(options))
        return max(len(self.layout), options[0])  # with fewer free cells the engine uses all

    def _invalid_layout(self, counts: Sequence[int]) -> list[int]:
        """A layout as it must have come up 100 times if the new board has no blocks; else none."""
        free = sorted(set(range(CELLS)) - set(CORNERS) - self.state.occupied())
        rng = random.Random(0)
        for count in counts:
            layouts = [rng.sample(free, min(count, len(free))) for _ in range(_SAMPLES)]
            invalid = [x for x in layouts if not is_valid_layout(set(x), self.recorded.exit)]
            if (len(invalid) / _SAMPLES) ** LAYOUT_TRIES > NEGLIGIBLE:
                return invalid[0]
        return []

    def _block_cell(self, _options: Sequence[int], index: int) -> int:
        attempt, block = divmod(index, LAYOUT_STRIDE)
        if block >= len(self.layout):
            raise ImpossibleOutcome(Site.BLOCK_CELL, f"{len(self.layout)} blocks are recorded")
        if attempt > 0 and self.recorded.cells[self.layout[block]].is_block:
            raise ImpossibleOutcome(Site.BLOCK_CELL, "the recorded layout is not valid")
        return self._arbitrary(self.layout[block])  # for valid layouts are not equally likely

    def _block_is_data(self, _options: Sequence[bool], index: int) -> bool:
        return self.recorded.cells[self.layout[index]].is_data

    def _block_is_question(self, _options: Sequence[bool], index: int) -> bool:
        return self.recorded.cells[self.layout[index]].content == Content.QUESTION

    def _block_points(self, _options: Sequence[int], index: int) -> int:
        return self.recorded.cells[self.layout[index]].points

    def _block_program(self, _options: Sequence[int], index: int) -> int:
        return self.recorded.cells[self.layout[index]].program

    def _resource_is_credits(self, _options: Sequence[bool], index: int) -> bool:
        return self.recorded.cells[index].credits > 0

    def _resource_amount(self, _options: Sequence[int], index: int) -> int:
        cell = self.recorded.cells[index]
        return cell.credits or cell.energy

    # --- spawns ----------------------------------------------------------------------------------

    def _spawn_cell(self, _options: Sequence[int], _index: int) -> int:
        return self.next_transmission(Site.SPAWN_CELL).cell

    def _spawn_type(self, _options: Sequence[EnemyType], _index: int) -> EnemyType:
        return self.next_transmission(Site.SPAWN_TYPE).type

    def next_transmission(self, site: Site) -> Transmission:
        """The recorded transmission that is about to be appended."""
        place, recorded = len(self.state.transmissions), self.recorded.transmissions
        if place >= len(recorded):
            raise ImpossibleOutcome(site, f"only {len(recorded)} transmissions are recorded")
        return recorded[place]

    # --- enemies and programs --------------------------------------------------------------------

    def _enemy_order(self, options: Sequence[Enemy], index: int) -> Enemy:
        enemies, recorded = self.state.enemies, self.recorded.enemies
        if len(enemies) != len(recorded):
            why = f"{len(recorded)} enemies are recorded, {len(enemies)} move"
            raise ImpossibleOutcome(Site.ENEMY_ORDER, why)
        sub_step = index // self.order_stride
        if sub_step >= len(self.order):
            if len(options) == 1:
                return options[0]
            raise ImpossibleOutcome(Site.ENEMY_ORDER, f"no order for sub-step {sub_step}")
        to_act = {id(enemy) for enemy in options}
        ordered = (enemies[place] for place in self.order[sub_step])
        return next(enemy for enemy in ordered if id(enemy) in to_act)

    def _poly_type(self, options: Sequence[EnemyType], index: int) -> EnemyType:
        enemy = self.enemies[index]
        damage = MAX_HP[enemy.type] - enemy.hp
        if all(MAX_HP[kind] <= damage for kind in options):
            return self._arbitrary(options[0])  # it dies whatever it becomes
        place = next(i for i, other in enumerate(self.state.enemies) if other is enemy)
        if place >= len(self.recorded.enemies):
            raise ImpossibleOutcome(Site.POLY_TYPE, f"no enemy {place} is recorded")
        return self.recorded.enemies[place].type

    def _warp_target(
        self, options: Sequence[Enemy | Transmission], _index: int
    ) -> Enemy | Transmission:
        here = self.recorded.player.cell
        there = [piece for piece in options if piece.cell == here]
        if not there:
            raise ImpossibleOutcome(Site.WARP_TARGET, "nothing was where the player is recorded")
        # Which enemy of a cell was chosen makes no difference. Of an enemy and a transmission the
        # one that was not chosen is still there.
        chosen = Enemy if self.recorded.transmission_on(here) else Transmission
        return self._arbitrary(next((p for p in there if isinstance(p, chosen)), there[0]))


def cover(state: State, cell: int) -> str:
    """The first thing that blocks the line between a cell and the player, if they are in line."""
    here = state.player.cell
    if not state.in_line(cell):
        return "out of line"
    step = 1 if row(cell) == row(here) else SIZE
    between = set(range(min(cell, here) + step, max(cell, here), step))
    if between & (state.blocks() | {enemy.cell for enemy in state.enemies}):
        return "behind a block or an enemy"
    return "behind a transmission" if between & state.occupied() else "in the open"


_TELL: dict[Site, Callable[[RecordedDice, Any, int], Any]] = {
    Site.EXIT_CORNER: RecordedDice._exit_corner,
    Site.BLOCK_COUNT: RecordedDice._block_count,
    Site.BLOCK_CELL: RecordedDice._block_cell,
    Site.BLOCK_IS_DATA: RecordedDice._block_is_data,
    Site.BLOCK_IS_QUESTION: RecordedDice._block_is_question,
    Site.BLOCK_POINTS: RecordedDice._block_points,
    Site.BLOCK_PROGRAM: RecordedDice._block_program,
    Site.RESOURCE_IS_CREDITS: RecordedDice._resource_is_credits,
    Site.RESOURCE_AMOUNT: RecordedDice._resource_amount,
    Site.SPAWN_CELL: RecordedDice._spawn_cell,
    Site.SPAWN_TYPE: RecordedDice._spawn_type,
    Site.ENEMY_ORDER: RecordedDice._enemy_order,
    Site.POLY_TYPE: RecordedDice._poly_type,
    Site.WARP_TARGET: RecordedDice._warp_target,
}
_CELLS = (Site.EXIT_CORNER, Site.BLOCK_CELL, Site.SPAWN_CELL)


def _format(site: Site, value: Any) -> str:
    if site in _CELLS:
        return f"({row(value)},{col(value)})"
    return str(getattr(value, "name", value)).lower()
