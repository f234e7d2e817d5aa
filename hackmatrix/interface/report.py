"""What an evaluation knows of its games, and what an environment makes of that."""

from typing import Any, NamedTuple

from numpy.typing import NDArray


class PlayedGames(NamedTuple):
    """Games played to their end or cut off; every array has the leading axis N."""

    returns: NDArray[Any]  # float32, sum of rewards
    lengths: NDArray[Any]  # int32, actions taken
    actions: NDArray[Any]  # int32[N, A], how often each was taken
    terminated: NDArray[Any]  # bool, ended by the game itself; else cut off
    info: dict[str, NDArray[Any]]  # of the last step, without `final_observation`
    final_observation: Any  # tree of arrays


class Column(NamedTuple):
    """A number of each game, reported as the mean with its 95 % interval."""

    title: str  # in tables, such as "stages cleared"
    key: str  # in JSON and metrics, such as "mean_stages_cleared"
    values: NDArray[Any]  # float or bool [N]

    @property
    def interval_key(self) -> str:
        """In JSON, the key of the interval: "stages_cleared_ci"."""
        return self.key.removeprefix("mean_") + "_ci"


class Breakdown(NamedTuple):
    """Numbers by name, such as the causes of death; those that are 0 are left out of tables."""

    title: str
    key: str
    values: dict[str, float]
    form: str  # a format specification of one number
