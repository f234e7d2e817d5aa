"""Costs of a TPU, and the time by which it must be gone."""

from datetime import date, datetime

from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.hardware import AS_OF
from hackmatrix.core.errors import UserError

_SOON = 7  # days before the end date from which it is told


def dollars_per_hour(tpu: Description) -> float:
    """The price of the whole TPU for an hour: the description's, or at most the list price."""
    price = tpu.slice.kind.price if tpu.price is None else tpu.price
    return price * tpu.slice.chips


def price_in_words(tpu: Description) -> str:
    """The price and where it comes from."""
    if tpu.price == 0:
        return "free"
    rate = dollars_per_hour(tpu)
    if tpu.price is not None:
        return f"${rate:.2f} an hour"
    least = "at most " if tpu.spot else ""
    note = f"on-demand list price of {AS_OF.isoformat()}" + (", spot is less" if tpu.spot else "")
    return f"{least}${rate:.2f} an hour ({note})"


def spent_in_words(tpu: Description, created: datetime, now: datetime) -> str:
    """The hours that a TPU is there, and their costs."""
    hours = max(0.0, (now - created).total_seconds() / 3600)
    if tpu.price == 0:
        return f"{hours:.1f} h, free"
    most = "at most " if tpu.price is None else ""
    return f"{hours:.1f} h, {most}${hours * dollars_per_hour(tpu):.2f} so far"


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
