"""What an evaluation knows of its games, and what an environment makes of that."""

from typing import Any, NamedTuple

from numpy.typing import NDArray


class PlayedGames(NamedTuple):
    """Games played to their end or cut off, as NumPy arrays with the leading axis N."""

    returns: Any  # float32, sum of rewards
    lengths: Any  # int32, actions taken
    actions: Any  # int32[N, A], how often each was taken
    terminated: Any  # bool, ended by the game itself; else cut off
    info: dict[str, Any]  # of the last step, without `final_observation`
    final_observation: Any  # tree of arrays


class Column(NamedTuple):
    """A number of each game, reported as the mean with its 95 % interval."""

    title: str  # in tables, such as "stages cleared"
    key: str  # of the mean in JSON and metrics, such as "mean_stages_cleared"
    values: NDArray[Any]  # float or bool [N]
    ci_key: str | None = None  # of the interval in JSON; None: the key and "_ci"

    @property
    def interval_key(self) -> str:
        """The key of the interval in JSON, such as "win_rate_ci"."""
        return self.ci_key or f"{self.key}_ci"


class Breakdown(NamedTuple):
    """Numbers by name, such as the causes of death; those that are 0 are left out of tables."""

    title: str
    key: str
    values: dict[str, float]
    form: str  # a format specification of one number
