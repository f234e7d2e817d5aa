"""The games of an evaluation, and the columns and breakdowns that an environment reports."""

from typing import Any, NamedTuple

from numpy.typing import NDArray


class PlayedGames(NamedTuple):
    """Finished or cut-off games as NumPy arrays with the leading axis N."""

    returns: Any  # float32, sum of rewards
    lengths: Any  # int32, actions taken
    actions: Any  # int32[N, A], int32[N, A], number of times each was taken
    terminated: Any  # bool, bool, whether the game itself ended it; else it was cut off
    info: dict[str, Any]  # of the last step, without `final_observation`
    final_observation: Any  # tree of arrays


class Column(NamedTuple):
    """A value of each game, reported as the mean with its 95 % interval."""

    title: str  # in tables, such as "stages cleared"
    key: str  # key of the mean in JSON and metrics, such as "mean_stages_cleared"
    values: NDArray[Any]  # float or bool [N], or of the chosen games only
    ci_key: str | None = None  # key of the interval in JSON; None: the key and "_ci"
    chosen: NDArray[Any] | None = None  # bool [N], the games that have a value; None: all

    @property
    def interval_key(self) -> str:
        """The key of the interval in JSON, such as "win_rate_ci"."""
        return self.ci_key or f"{self.key}_ci"


class Breakdown(NamedTuple):
    """Values by name, such as the causes of death; zeros are left out of tables."""

    title: str
    key: str
    values: dict[str, float]
    form: str  # a format specification of one number
