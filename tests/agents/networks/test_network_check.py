"""An injected network is checked for its face before anything compiles."""

from typing import Any

import jax.numpy as jnp
import probe_environments as probes
import pytest
from memory_network import MemoryNetwork

from hackmatrix.core.errors import UserError
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.trainer.trainer import Trainer

CONFIG = PPOConfig(num_envs=8, num_steps=4)


class TwoValues(MemoryNetwork):
    def __call__(self, *args: Any) -> Any:
        return super().__call__(*args)[:2]


class OtherLogits(MemoryNetwork):
    def __call__(self, *args: Any) -> Any:
        logits, values, carry = super().__call__(*args)
        return logits[:, :1], values, carry


class WideValues(MemoryNetwork):
    def __call__(self, *args: Any) -> Any:
        logits, values, carry = super().__call__(*args)
        return logits, values[:, None], carry


class GrowingCarry(MemoryNetwork):
    def __call__(self, *args: Any) -> Any:
        logits, values, carry = super().__call__(*args)
        return logits, values, jnp.concatenate([carry, carry], axis=1)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (object(), "network: object has no num_actions, recurrent, reads_features, init"),
        (MemoryNetwork, "network: type is a class, not an object of it|has no num_actions"),
        (TwoValues(probes.Grid()), "network: must return logits, values and the carry"),
        (OtherLogits(probes.Grid()), r"the logits must be float32\[2, 4\], is float32\[2, 1\]"),
        (WideValues(probes.Grid()), r"the values must be float32\[2\], is float32\[2, 1\]"),
        (
            GrowingCarry(probes.Grid()),
            r"the carry after a step must be float32\[2, 16\], is float32\[2, 32\]",
        ),
    ],
)
def test_what_is_no_network_is_refused_in_one_line(network: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        Trainer(probes.Grid(), CONFIG, network)
    assert "\n" not in str(raised.value)
