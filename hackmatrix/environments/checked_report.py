"""An environment's own columns in an evaluation, checked."""

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.environment import Environment, optional_members
from hackmatrix.environments.interface.report import Breakdown, Column, PlayedGames
from hackmatrix.environments.user_code import convert_errors

_RESERVED = ("episodes", "mean_return", "mean_length", "truncated")  # keys of every report


def report_of(env: Environment, games: PlayedGames) -> list[Column | Breakdown]:
    """The columns and breakdowns of `env.report(games)`; none if it has no such method.

    Raises:
        UserError: the method fails, or returns something else.
    """
    if (report := optional_members(env).report) is None:
        return []
    with convert_errors("report"):
        parts = report(games)
        if not isinstance(parts, list | tuple):
            raise UserError(f"must return a list of Column and Breakdown, returns {parts!r:.60}")
        keys = list(_RESERVED)
        for part in parts:
            if not isinstance(part, Column | Breakdown):
                raise UserError(f"must return Column and Breakdown, returns {part!r:.60}")
            if part.key in keys:
                raise UserError(f"the key {part.key} is there twice")
            keys.append(part.key)
            if isinstance(part, Column):
                _check_column(part, len(games.returns))
            else:
                _check_breakdown(part)
        return list(parts)


def _check_column(column: Column, count: int) -> None:
    values = np.asarray(column.values)
    if column.chosen is not None:
        count = int(np.sum(column.chosen))
    if values.shape != (count,) or not count or values.dtype.kind not in "biuf":
        raise UserError(
            f"{column.key} must have one number for each of {count} games, has "
            f"{values.dtype}{list(values.shape)}"
        )


def _check_breakdown(breakdown: Breakdown) -> None:
    for name, number in breakdown.values.items():
        try:
            format(number, breakdown.form)
        except (TypeError, ValueError) as error:
            raise UserError(f"{breakdown.key}: {name} is {number!r}: {error}") from None
