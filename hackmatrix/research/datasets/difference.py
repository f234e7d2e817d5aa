"""The first difference of a replayed game from its recording."""

from typing import NamedTuple


class Difference(NamedTuple):
    """The first one of a game."""

    game: int  # number
    action: int  # from 0 on
    field: str  # action, reward, end or observation
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return (
            f"game {self.game:,}, action {self.action:,}: {self.field} "
            f"{self.recorded} in the data, {self.replayed} when played again"
        )
