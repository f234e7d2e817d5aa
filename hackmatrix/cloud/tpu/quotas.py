"""The project's quotas of TPUs, from what gcloud tells."""

import json
from typing import Any


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
