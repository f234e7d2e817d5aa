"""The events of an action in order, for drawing the game."""

from enum import StrEnum
from typing import NamedTuple


class EventKind(StrEnum):
    """Kinds of events; comments name the fields of `Event` that each uses."""

    PLAYER_MOVED = "player_moved"  # cell, to
    PICKED_UP = "picked_up"  # cell: a data siphon
    ATTACKED = "attacked"  # cell, piece, amount: damage to an enemy
    DESTROYED = "destroyed"  # cell, piece
    SIPHONED = "siphoned"  # cell
    PROGRAM_RAN = "program_ran"  # piece: its name
    BLOCK_REMOVED = "block_removed"  # cell
    CHANGED_TYPE = "changed_type"  # cell, piece: the new type
    UNDONE = "undone"
    ENEMY_TURN_SKIPPED = "enemy_turn_skipped"
    LANDED = "landed"  # cell, piece: a transmission became an enemy
    ENEMY_MOVED = "enemy_moved"  # cell, to, piece
    HIT = "hit"  # cell, to, piece: an enemy hit the player
    SPAWNED = "spawned"  # cell: a transmission
    STAGE_COMPLETED = "stage_completed"  # amount: its number
    STAGE_BEGAN = "stage_began"  # amount: its number
    WON = "won"
    DIED = "died"


class Event(NamedTuple):
    """One thing that happened.

    Attributes:
        kind: what happened.
        cell: where, a flat index, or None.
        to: where it ended, for moves and hits.
        piece: enemy type, "transmission" or program name, in lower case.
        amount: damage or stage number.
    """

    kind: EventKind
    cell: int | None = None
    to: int | None = None
    piece: str | None = None
    amount: int | None = None
