"""The console of rich on which everything of the package is drawn. Imports no JAX."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from hackmatrix.core.streams import clean


class Screen(Console):
    """A console that draws, and shows no control characters of the texts that it is given."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces of what is drawn; those that steer the terminal are rich's own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=clean(piece.text))
