"""Kinds of cloud TPUs: chips, hosts, zones, runtimes, prices.

Zones and runtimes are as documented by Google and known on the day `AS_OF`; prices are list prices
on demand in US dollars for one chip and hour, and the most that a spot TPU costs. None is checked
against the API. A description can name another zone, runtime and price, so nothing here stops what
Google changes.
"""

import re
from datetime import date
from typing import NamedTuple

from hackmatrix.core.errors import UserError

AS_OF = date(2026, 11, 22)


class HardwareFamily(NamedTuple):
    """A generation of TPUs."""

    prefix: str  # of its types in the API
    cores_per_chip: int  # 2 where the number in a type counts cores, 1 where it counts chips
    chips_of_one_host: int  # largest slice that is a single machine
    runtime: str
    zones: tuple[str, ...]
    price: float
    machine: str  # of Compute Engine and GKE, with {} for the chips of a machine
    gke: str  # its name in GKE
    dimensions: int  # of the grid of chips
    groups: bool = False  # whether Compute Engine has managed instance groups of it
    flex_start: bool = False  # whether Google has it for a limited time, from a queue


FAMILIES = {
    "v3": HardwareFamily(
        "v3-",
        2,
        4,
        "tpu-ubuntu2204-base",
        ("us-central1-a", "us-central1-b"),
        2.00,
        "ct3-hightpu-{}t",
        "tpu-v3-slice",
        2,
    ),
    "v4": HardwareFamily(
        "v4-",
        2,
        4,
        "tpu-ubuntu2204-base",
        ("us-central2-b",),
        3.22,
        "ct4p-hightpu-{}t",
        "tpu-v4-podslice",
        3,
    ),
    "v5e": HardwareFamily(
        "v5litepod-",
        1,
        8,
        "v2-alpha-tpuv5-lite",
        ("us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a", "europe-west4-b"),
        1.20,
        "ct5lp-hightpu-{}t",
        "tpu-v5-lite-podslice",
        2,
        flex_start=True,
    ),
    "v5p": HardwareFamily(
        "v5p-",
        2,
        4,
        "v2-alpha-tpuv5",
        ("us-central1-a", "us-east5-a", "europe-west4-b"),
        4.20,
        "ct5p-hightpu-{}t",
        "tpu-v5p-slice",
        3,
        groups=True,
    ),
    "v6e": HardwareFamily(
        "v6e-",
        1,
        8,
        "v2-alpha-tpuv6e",
        ("us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b", "europe-west4-a"),
        2.70,
        "ct6e-standard-{}t",
        "tpu-v6e-slice",
        2,
        groups=True,
        flex_start=True,
    ),
}
_CHIPS_OF_HOST_IN_POD = 4
_TOPOLOGIES = {
    2: {
        1: "1x1",
        4: "2x2",
        8: "2x4",
        16: "4x4",
        32: "4x8",
        64: "8x8",
        128: "8x16",
        256: "16x16",
    },
    3: {4: "2x2x1", 8: "2x2x2", 16: "2x2x4", 32: "2x4x4", 64: "4x4x4", 128: "4x4x8"},
}


class Slice(NamedTuple):
    """A TPU of one type, such as v4-16."""

    family: str  # a key of `FAMILIES`
    type: str  # as the API names it
    chips: int
    hosts: int

    @property
    def chips_per_host(self) -> int:
        """Chips of each of its machines."""
        return self.chips // self.hosts

    @property
    def hardware(self) -> HardwareFamily:
        """Its row of `FAMILIES`."""
        return FAMILIES[self.family]

    @property
    def machine(self) -> str:
        """The machine type of Compute Engine."""
        return self.hardware.machine.format(self.chips_per_host)

    @property
    def topology(self) -> str:
        """The grid of its chips, as 2x2x4.

        Raises:
            UserError: no grid of this size is known.
        """
        if grid := _TOPOLOGIES[self.hardware.dimensions].get(self.chips):
            return grid
        raise UserError(f"type {self.type}: the grid of {self.chips} chips is not known here")


def slice_of(text: str) -> Slice:
    """Reads a type: v4-8, v5litepod-16, and v5e-16 for the latter.

    Raises:
        UserError: there is no such type.
    """
    match = re.fullmatch(r"(v5litepod|v\d[a-z]?)-(\d{1,5})", text)
    name = "v5e" if match and match[1] == "v5litepod" else match and match[1]
    if match is None or name not in FAMILIES:
        known = ", ".join(f"{family.prefix}N" for family in FAMILIES.values())
        raise UserError(f"type must be one of {known}, such as v4-8, got {text!r:.40}")
    family, size = FAMILIES[name], int(match[2])
    chips, rest = divmod(size, family.cores_per_chip)
    hosts = 1 if chips <= family.chips_of_one_host else chips // _CHIPS_OF_HOST_IN_POD
    if rest or (chips not in _TOPOLOGIES[family.dimensions] and chips % _CHIPS_OF_HOST_IN_POD):
        sizes = ", ".join(str(size * family.cores_per_chip) for size in (4, 8, 16, 32))
        raise UserError(f"type {text}: there is none of this size; there are {sizes} and larger")
    if not chips:
        raise UserError(f"type {text}: a TPU has at least one chip")
    return Slice(name, f"{family.prefix}{size}", chips, hosts)
