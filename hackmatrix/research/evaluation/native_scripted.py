"""Games of the scripted player in the native engine, which plays as `agents/scripted` does."""

from collections.abc import Collection

import numpy as np

from hackmatrix.agents.scripted.weights import TUNED
from hackmatrix.core.processes.cores import num_cores
from hackmatrix.game.native.batch import scripted_actions
from hackmatrix.research.evaluation.accounts import Account
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.lockstep_games import Positions, lockstep_accounts

WEIGHTS = np.hstack(TUNED)


def scripted_accounts(limits: Limits, forbidden: Collection[int]) -> list[Account]:
    """The accounts of its games without some actions."""
    bits = sum(1 << action for action in forbidden)

    def choose(positions: Positions) -> object:
        return scripted_actions(positions.records, WEIGHTS, bits, threads=num_cores())

    return lockstep_accounts(choose, limits)
