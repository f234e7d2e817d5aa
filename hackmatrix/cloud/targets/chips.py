"""Chips that programs are compiled for without one: their memory, speed, links and prices.

Google's and NVIDIA's published figures, known on the day `AS_OF`. Clocks are those with which the
published rates of matrix products come out.
"""

from datetime import date
from typing import NamedTuple

from hackmatrix.cloud.tpu.hardware import FAMILIES, slice_of
from hackmatrix.core.errors import UserError

AS_OF = date(2026, 11, 25)


class Chip(NamedTuple):
    """A kind of chip."""

    memory: int  # bytes
    clock: float  # GHz, in which the compiler's cycles count
    link: float  # bytes a second, of one link in one direction
    flops: float  # a second, of products in bfloat16
    bandwidth: float  # bytes a second, of its memory
    dollars: float | None  # an hour, list price on demand; None: it depends on who lends it
    cores: int = 1  # that share the blocks of a kernel of Pallas
    product: int = 2  # vector operations that a product of two words takes there


class Target(NamedTuple):
    """Some chips of one kind that train together."""

    name: str
    chip: Chip
    family: str  # a key of `CHIPS`
    num_chips: int
    grid: str  # of the chips, as 2x2x1

    @property
    def is_tpu(self) -> bool:
        """Whether it is a TPU; otherwise it is a GPU."""
        return self.family in FAMILIES


_GIB = 2**30

CHIPS = {
    "v4": Chip(32 * _GIB, 1.05, 45e9, 275e12, 1.2e12, FAMILIES["v4"].price, 2, 30),
    "v5e": Chip(16 * _GIB, 1.5, 45e9, 197e12, 0.82e12, FAMILIES["v5e"].price),
    "v5p": Chip(95 * _GIB, 1.75, 90e9, 459e12, 2.77e12, FAMILIES["v5p"].price, 2),
    "v6e": Chip(32 * _GIB, 1.75, 90e9, 918e12, 1.64e12, FAMILIES["v6e"].price),
    "h100": Chip(80 * 10**9, 1.98, 450e9, 989e12, 3.35e12, None),
    "h200": Chip(141 * 10**9, 1.98, 450e9, 989e12, 4.8e12, None),
}


def target_of(name: str) -> Target:
    """The target of this name: a type of TPU such as v4-8 or v5e-8, or one h100 or h200.

    Raises:
        UserError: there is none.
    """
    if name in CHIPS and name not in FAMILIES:
        return Target(name, CHIPS[name], name, 1, "1x1x1")
    try:
        tpu_slice = slice_of(name)
    except UserError as error:
        raise UserError(f"target {name!r:.40}: expected h100, h200 or a TPU; {error}") from None
    if tpu_slice.family not in CHIPS:
        families = ", ".join(sorted(CHIPS))
        raise UserError(
            f"target {name}: nothing compiles for {tpu_slice.family}; there are {families}"
        )
    return Target(
        name, CHIPS[tpu_slice.family], tpu_slice.family, tpu_slice.chips, tpu_slice.topology
    )
