"""Settings for large batches: more minibatches, fewer epochs, a lower learning rate."""

import dataclasses
from collections.abc import Collection

from hackmatrix.learning.trainer.config import AlgorithmConfig

REFERENCE_BATCH = 256 * 128  # transitions; the next three constants were chosen for it
REFERENCE_MINIBATCHES = 4
REFERENCE_EPOCHS = 4
REFERENCE_LR = 2.5e-4
MIN_EPOCHS = 2  # with one, each rare event is used only once


def auto_scale_for_batch_size(
    config: AlgorithmConfig, explicit: Collection[str] = (), accumulation: int = 1
) -> tuple[AlgorithmConfig, list[str]]:
    """Keeps minibatches near 8,192 transitions, and the policy change per update constant.

    For a batch of k >= 2 whole reference batches: k times the minibatches (or the next smaller
    divisor of the batch), epochs divided by k but at least 2, and the learning rate divided by the
    growth of the number of gradient steps.

    Args:
        config: the settings to scale.
        explicit: fields that the user has set; they are kept.
        accumulation: number of minibatches per gradient step; set in the result.

    Returns:
        The scaled configuration, and a line about each change.
    """
    factor = config.batch_size // REFERENCE_BATCH
    if factor < 2:
        return dataclasses.replace(config, gradient_accumulation_steps=accumulation), []
    minibatches, epochs, lr = config.num_minibatches, config.update_epochs, config.lr
    if "num_minibatches" not in explicit:
        minibatches = _divisor(config.batch_size, REFERENCE_MINIBATCHES * factor)
    if "update_epochs" not in explicit:
        epochs = max(MIN_EPOCHS, REFERENCE_EPOCHS // factor)
    if "lr" not in explicit:
        steps = minibatches / accumulation * epochs
        growth = steps / (REFERENCE_MINIBATCHES * REFERENCE_EPOCHS)
        lr = REFERENCE_LR / max(growth, 1.0)
    result = dataclasses.replace(
        config,
        num_minibatches=minibatches,
        update_epochs=epochs,
        lr=lr,
        gradient_accumulation_steps=accumulation,
    )
    notes = [
        f"{name} {getattr(config, name):g} -> {getattr(result, name):g}"
        for name in ("num_minibatches", "update_epochs", "lr")
        if getattr(config, name) != getattr(result, name)
    ]
    if (size := config.batch_size // minibatches) > 2 * REFERENCE_BATCH // REFERENCE_MINIBATCHES:
        notes.append(f"minibatches of {size:,} transitions are large, but num_minibatches is given")
    return result, notes


def _divisor(dividend: int, most: int) -> int:
    """The largest divisor of `dividend` that is at most `most`."""
    return next(d for d in range(min(most, dividend), 0, -1) if dividend % d == 0)
