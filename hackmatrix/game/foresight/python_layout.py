"""Section 12, continued: the layout `tactical`, worked out from a compact record."""

from collections.abc import Iterable, Sequence

from hackmatrix.game.foresight.python_board import FeatureGroups, look
from hackmatrix.game.foresight.python_siphoning import of_siphoning
from hackmatrix.game.foresight.python_strikes import of_programs
from hackmatrix.game.foresight.python_threats import of_directions, of_window
from hackmatrix.game.foresight.visible_state import VisibleState
from hackmatrix.game.rules.board import SIZE, col, row
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.stages import LAST_STAGE, MAX_HP
from hackmatrix.game.rules.tactical import GROUPS, HOARDS, MAX_COUNT


def tactical_numbers(record: bytes) -> list[int]:
    """The integers of `rules.tactical.GROUPS`, of a compact record."""
    visible = look(record)
    groups: FeatureGroups = {
        **of_directions(visible),
        **of_programs(visible),
        **of_window(visible),
        **of_siphoning(visible),
        **_pieces(visible),
        **_scalars(record),
    }
    return [value for group in GROUPS for value in groups[group.name]]


def _pieces(visible: VisibleState) -> FeatureGroups:
    types = [enemy.type for enemy in visible.enemies]
    stunned = sum(enemy.stunned for enemy in visible.enemies)
    return {
        "enemies": [min(types.count(enemy_type), MAX_COUNT) for enemy_type in EnemyType],
        "stunned": [min(stunned, MAX_COUNT)],
        "hidden": [min(visible.last_seen.bit_count(), MAX_COUNT)],
        "transmissions": [min(visible.transmissions.bit_count(), MAX_COUNT)],
        "empty_of_pieces": [int(not visible.pieces)],
    }


def _scalars(record: bytes) -> FeatureGroups:
    cell = number_of(record, "cell")

    def scalar(name: str) -> int:
        value: int = number_of(record, name)
        return value

    def one_hot(value: int, values: range) -> list[int]:
        return _flags(value == one for one in values)

    def at_least(name: str, bounds: Sequence[int]) -> list[int]:
        return _flags(scalar(name) >= bound for bound in bounds)

    return {
        "hp": one_hot(scalar("hp"), range(1, MAX_HP + 1)),
        "siphons": at_least("siphons", (1, 2, 3)),
        "attack": at_least("attack", (2, 3, 4)),
        "credits": [min(scalar("credits"), 60)],
        "energy": [min(scalar("energy"), 60)],
        "has_credits": at_least("credits", HOARDS),
        "has_energy": at_least("energy", HOARDS),
        "stage": one_hot(scalar("stage"), range(1, LAST_STAGE + 1)),
        "turn": [min(scalar("turn"), 80)],
        "until_task": [max(-1, min(24, scalar("next_task") - scalar("turn")))],
        "interval": [min(scalar("interval"), 24)],
        "pending": [min(scalar("pending"), 18)],
        "saved": [scalar("saved")],
        "atk_uses": [scalar("atk_uses")],
        "flags": [scalar(flag) for flag in ("show", "calm", "step")],
        "line": [*one_hot(row(cell), range(SIZE)), *one_hot(col(cell), range(SIZE))],
    }


def _flags(values: Iterable[object]) -> list[int]:
    return [int(bool(value)) for value in values]
