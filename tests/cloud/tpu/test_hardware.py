"""Types of TPUs, their zones, runtimes and prices."""

import pytest

from hackmatrix.cloud.tpu.hardware import FAMILIES, slice_of
from hackmatrix.core.errors import UserError


@pytest.mark.parametrize(
    ("text", "type_", "chips", "hosts", "machine"),
    [
        ("v4-8", "v4-8", 4, 1, "ct4p-hightpu-4t"),
        ("v4-64", "v4-64", 32, 8, "ct4p-hightpu-4t"),
        ("v3-8", "v3-8", 4, 1, "ct3-hightpu-4t"),
        ("v5e-8", "v5litepod-8", 8, 1, "ct5lp-hightpu-8t"),
        ("v5litepod-64", "v5litepod-64", 64, 16, "ct5lp-hightpu-4t"),
        ("v5p-16", "v5p-16", 8, 2, "ct5p-hightpu-4t"),
        ("v6e-1", "v6e-1", 1, 1, "ct6e-standard-1t"),
        ("v6e-64", "v6e-64", 64, 16, "ct6e-standard-4t"),
    ],
)
def test_types(text: str, type_: str, chips: int, hosts: int, machine: str) -> None:
    found = slice_of(text)
    assert (found.type, found.chips, found.hosts, found.machine) == (type_, chips, hosts, machine)
    assert eval(found.topology.replace("x", "*")) == chips


@pytest.mark.parametrize("text", ["", "v4", "v4-", "v4-9", "v4-0", "v9-8", "v6e-3", "v4-8; ls"])
def test_there_is_no_such_type(text: str) -> None:
    with pytest.raises(UserError, match="type"):
        slice_of(text)


def test_rows_of_the_quota_table() -> None:
    """Of S1: zone, type as it is spoken of, name in the API, runtime."""
    for zone, family, type_, runtime in (
        ("us-central2-b", "v4", "v4-8", "tpu-ubuntu2204-base"),
        ("us-central1-a", "v5e", "v5litepod-8", "v2-alpha-tpuv5-lite"),
        ("europe-west4-a", "v6e", "v6e-8", "v2-alpha-tpuv6e"),
    ):
        assert slice_of(type_).family == family
        assert zone in FAMILIES[family].zones
        assert FAMILIES[family].runtime == runtime
