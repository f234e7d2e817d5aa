"""docs/tpu.md names every subcommand, and its table is that of the code."""

from paths import DOCS

from hackmatrix.cli.tpu import SUBCOMMANDS
from hackmatrix.cloud.tpu.hardware import AS_OF, FAMILIES

TEXT = (DOCS / "tpu.md").read_text()


def test_every_subcommand_is_documented() -> None:
    for name in SUBCOMMANDS:
        assert f"hackmatrix tpu {name} my-tpu.yaml" in TEXT, name


def test_the_types_are_those_of_the_table() -> None:
    assert f"on {AS_OF.isoformat()} (`hackmatrix/cloud/tpu/hardware.py`)" in TEXT
    for family in FAMILIES.values():
        chips = f"N/{family.cores_per_chip}" if family.cores_per_chip > 1 else "N"
        zones, price = ", ".join(family.zones), f"{family.price:.2f}"
        row = f"| {family.prefix}N | {chips} | {zones} | `{family.runtime}` | {price} |"
        assert row in TEXT
