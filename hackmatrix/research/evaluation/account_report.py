"""The report on games of HackMatrix, from their accounts alone."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hackmatrix.environments.hackmatrix.metric_table import report
from hackmatrix.environments.interface.report import PlayedGames
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.rewards import UNIT
from hackmatrix.research.evaluation.accounts import Account
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.report import Report, report_on


def report_of_accounts(accounts: Sequence[Account], limits: Limits) -> Report:
    """The report on games of HackMatrix, from their accounts alone."""
    games = _to_played_games(accounts)
    return report_on(report(games), games, limits, accounts)


def _to_played_games(accounts: Sequence[Account]) -> PlayedGames:
    """The games as the JAX engine would return them, without final observations."""

    def array(value: Callable[[Account], Any], dtype: Any) -> Any:
        return np.array([value(account) for account in accounts], dtype)

    action_counts = [
        np.bincount(np.frombuffer(a.actions, np.uint8), minlength=NUM_ACTIONS) for a in accounts
    ]
    return PlayedGames(
        returns=array(lambda account: account.units * UNIT, np.float32),
        lengths=array(lambda account: len(account.actions), np.int32),
        actions=np.array(action_counts, np.int32),
        terminated=array(lambda account: account.ending is not None, bool),
        info={
            "stage": array(lambda account: account.stages[-1].stage, np.int32),
            "score": array(lambda account: account.score, np.int32),
            "programs_owned": array(lambda account: account.programs, np.int32),
            "won": array(lambda account: account.won, bool),
        },
        final_observation=None,
    )
