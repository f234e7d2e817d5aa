"""Dice for `--programs`: blocks of new stages carry only some of the programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.rules.chance import Site


@dataclass(slots=True)
class LimitedDice(Dice):
    """Draws the programs of blocks among `programs`, again among all when each is on the board."""

    programs: tuple[int, ...] = ()

    def choose(self, site: Site, options: Sequence[Any], index: int = 0) -> Any:
        """Draws one of the options, all equally likely."""
        if site == Site.BLOCK_PROGRAM:
            options = [program for program in options if program in self.programs] or self.programs
        return Dice.choose(self, site, options, index)
