"""Costs of a TPU, and the time by which it must be gone."""

from datetime import date

from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hardware import AS_OF
from hackmatrix.core.errors import UserError

_SOON = 7  # days before the end date from which it is told


def dollars_per_hour(tpu: Description) -> float:
    """The price of the whole TPU for an hour: the description's, or at most the list price."""
    price = tpu.slice.hardware.price if tpu.price is None else tpu.price
    return price * tpu.slice.chips


def price_in_words(tpu: Description) -> str:
    """The price and where it comes from, after "it will cost"."""
    if tpu.price == 0:
        return "nothing"
    rate = dollars_per_hour(tpu)
    if tpu.price is not None:
        return f"${rate:.2f} an hour"
    listed = f"${rate:.2f} an hour (on-demand list price of {AS_OF.isoformat()}"
    if tpu.flex_hours is not None:
        return f"{listed}; flex-start has its own)"
    return f"at most {listed}, spot is less)" if tpu.is_spot else f"{listed})"


def describe_costs(tpu: Description, seconds: float) -> str:
    """The most for which a TPU was READY, which is what Google charges for, and the costs."""
    hours = seconds / 3600
    cost = "is free" if tpu.price == 0 else f"cost at most ${hours * dollars_per_hour(tpu):.2f}"
    return f"at most {hours:.1f} h READY, which {cost}"


def check_end_date(tpu: Description, today: date) -> str | None:
    """A warning if the end date is near.

    Raises:
        UserError: it has passed.
    """
    if tpu.last_day is None:
        return None
    left = (tpu.last_day - today).days
    if left < 0:
        raise UserError(
            f"the end date {tpu.end_date} has passed, and a TPU would cost money: change "
            "end_date if that is wanted"
        )
    if left <= _SOON:
        return f"{left} days are left until the end date {tpu.end_date}"
    return None
