"""Which networks can be searched with; imports no JAX, so that a command refuses others at once."""

from hackmatrix.agents.networks.policy import Policy
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID


def check_searchable(policy: Policy) -> None:
    """Raises `UserError` if it plays another game, or its values are not in units of the reward."""
    if policy.environment != ENVIRONMENT_ID:
        raise UserError(
            f"{policy.path}: plays {policy.environment}; only {ENVIRONMENT_ID} can be searched"
        )
    run = policy.about.get("config") or {}
    recurrent = policy.config.recurrent
    if recurrent or run.get("normalize_rewards", True):
        raise UserError(
            f"{policy.path}: search needs a network without memory whose values are in units "
            "of the reward: one trained with normalize_rewards false"
        )
    if not isinstance(run.get("gamma"), int | float):
        raise UserError(f"{policy.path}: its config has no gamma, which a search discounts by")
