"""The metrics of a curriculum, in addition to the game's. Imports no JAX."""

from hackmatrix.environments.interface.metric import Metric, Over, Shown

METRICS = (
    Metric(
        "curriculum/level",
        Over.STEPS,
        "level at which new games begin, from 1",
        shown=Shown("GAME", "level", ".2f", in_summary=True),
    ),
    Metric(
        "curriculum/result",
        Over.CHANCES,
        "of the games that began at the level, the mean of what its `advance` names",
        shown=Shown("GAME", "level result", ".3f"),
    ),
)
