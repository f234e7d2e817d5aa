"""Costs of a TPU, and the time by which it must be gone."""

import json
from datetime import date
from typing import Any

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


# --- The project's quotas of TPUs, from what gcloud tells -----------------------------------------


def quota_table(text: str) -> str:
    """A line for each quota above 0: its limit, where it holds, and its name.

    Args:
        text: JSON of `gcloud alpha services quota list`. A grant, such as those of TPU Research
            Cloud, is an override of the producer.
    """
    try:
        metrics = json.loads(text)
    except ValueError:
        return f"gcloud printed no JSON: {text!r:.80}"
    rows = sorted(row for metric in metrics for row in _rows(metric))
    if not rows:
        return "the project has no quota of TPUs"
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    lines = ["  ".join(map(str.ljust, row, [*widths, 0])).rstrip() for row in rows]
    return "\n".join(lines)


def _rows(metric: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    name = metric.get("displayName") or metric.get("metric", "")
    buckets = (
        bucket
        for limit in metric.get("consumerQuotaLimits", [])
        for bucket in limit.get("quotaBuckets", [])
    )
    return [
        (
            name,
            ", ".join(bucket.get("dimensions", {}).values()) or "everywhere",
            "unlimited" if limit < 0 else str(limit),
            "(a grant)" if "producerOverride" in bucket else "",
        )
        for bucket in buckets
        if (limit := int(bucket.get("effectiveLimit", 0)))
    ]
