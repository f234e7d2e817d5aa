"""A position in text (`docs/positions.md`) from standard input, as a picture on standard output."""

import sys

from hackmatrix.game.drawing import draw
from hackmatrix.game.engine import Game

sys.stdout.write(draw(Game.from_text(sys.stdin.read())))
