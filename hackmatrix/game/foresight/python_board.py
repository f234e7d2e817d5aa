"""What the player sees, read from a compact record, and what enemies can do from there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hackmatrix.game.rules.board import CELLS, NEIGHBOUR, NEIGHBOURS
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.observation import PLANE, CellBytes, number_of

Numbers = dict[str, Sequence[int]]


@dataclass(frozen=True)
class Board:
    """What the player sees, or what would be there after a program."""

    record: bytes
    cell: int
    cells: list[CellBytes]
    blocks: frozenset[int]
    enemies: dict[int, EnemyType]
    hp: dict[int, int]
    stunned: frozenset[int]
    transmissions: frozenset[int]

    @classmethod
    def of(cls, record: bytes) -> "Board":
        """Reads a compact record."""
        end = len(PLANE) * CELLS
        cells = [CellBytes(*record[cell:end:CELLS]) for cell in range(CELLS)]
        kind = {c: cells[c].field("enemy_type") for c in range(CELLS)}
        return cls(
            record,
            number_of(record, "cell"),
            cells,
            frozenset(c for c in range(CELLS) if cells[c].field("block")),
            {c: EnemyType(kind[c] - 1) for c in range(CELLS) if kind[c]},
            {c: cells[c].field("enemy_hp") for c in range(CELLS) if kind[c]},
            frozenset(c for c in range(CELLS) if cells[c].field("stunned")),
            frozenset(c for c in range(CELLS) if cells[c].field("transmission")),
        )

    def number(self, name: str) -> int:
        """A number of the record by name."""
        return number_of(self.record, name)

    def crossed(self, cell: int) -> bool:
        """Whether an enemy can cross a cell."""
        return cell not in self.blocks | self.enemies.keys() | self.transmissions

    def hits(self, goal: int) -> int:
        """The enemies that would hit a player on a cell in the coming enemy turn."""
        return sum(self._hits(enemy, goal) for enemy in self.enemies if enemy not in self.stunned)

    def _hits(self, enemy: int, goal: int) -> bool:
        if goal in NEIGHBOURS[enemy]:
            return True
        if self.enemies[enemy] != EnemyType.VIRUS or enemy == goal:
            return False
        return any(self.crossed(c) and c in NEIGHBOURS[enemy] for c in NEIGHBOURS[goal])

    def target(self, direction: int) -> int | None:
        """The cell of what an attack in a direction strikes."""
        cell = NEIGHBOUR[self.cell][direction]
        while cell is not None and self.crossed(cell):
            cell = NEIGHBOUR[cell][direction]
        return cell if cell in self.enemies or cell in self.transmissions else None

    def goes(self, direction: int) -> bool:
        """Whether a direction is a valid action."""
        cell = NEIGHBOUR[self.cell][direction]
        return cell is not None and (cell not in self.blocks or cell in self.enemies)

    def without(self, struck: Iterable[int], dead: Iterable[int]) -> "Board":
        """The board when some enemies are struck, some of them dead, so that none of them acts."""
        dead = set(dead)
        return replace(
            self,
            enemies={cell: kind for cell, kind in self.enemies.items() if cell not in dead},
            stunned=self.stunned | set(struck),
        )
