"""The update of `configs/tpu_v4_8.yaml` compiles for chips that are not here, and stays as small.

The figures are of JAX 0.10, its plugin for CUDA and libtpu 0.0.42. A change that moves one by more
than a tenth writes down the new one here, and its reason in the message of the commit.
"""

import json
import os
import subprocess
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from paths import ROOT

from hackmatrix.cloud.targets.compiling import flops

PYTHON = ROOT / ".venv-targets" / "bin" / "python"  # `make targets` makes it

UPDATES = {
    "v4-8": {
        "kernels": 124_962,
        "by index": 13_212,
        "bytes": 245_000_000,
        "all-reduces": 777,
        "bytes of all-reduces": 141_000_000,
    },
    "v6e-8": {
        "kernels": 126_366,
        "by index": 13_212,
        "bytes": 71_000_000,
        "all-reduces": 777,
        "bytes of all-reduces": 141_000_000,
    },
    "h100": {
        "kernels": 74_436,
        "by index": 17_942,
        "bytes": 570_000_000,
        "all-reduces": 0,
        "bytes of all-reduces": 0,
    },
}
MEASURE = """
import json, sys
from hackmatrix.cloud.targets.estimate import measure
from hackmatrix.cloud.targets.options import TargetOptions
report = measure(TargetOptions(target=sys.argv[1]), ["update"])
print(json.dumps(report.as_dict()))
"""


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.skipif(not PYTHON.exists(), reason="needs `make targets`")
@pytest.mark.parametrize("target", UPDATES)
def test_the_update_compiles_for_a_chip_and_is_no_larger(target: str) -> None:
    command = [PYTHON, "-c", MEASURE, target]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    report = json.loads(result.stdout)
    update = report["programs"]["update"]
    figures = {
        "kernels": update["kernels"],
        "by index": update["kernels_by_index"],
        "bytes": update["bytes"],
        "all-reduces": report["all_reduces"],
        "bytes of all-reduces": report["all_reduced_bytes"],
    }
    assert figures == {name: pytest.approx(x, rel=0.1) for name, x in UPDATES[target].items()}
    assert not report["unknown_loops"]


def product(x: Any) -> Any:
    return x @ x


def in_turn(x: Any) -> Any:
    return jax.lax.scan(lambda carry, _: (product(carry), None), x, length=5)[0]


def either(x: Any) -> Any:
    return jax.lax.cond(x[0, 0] > 0, product, lambda x: x, x)


@pytest.mark.parametrize(("function", "products"), [(product, 1), (in_turn, 5), (either, 1)])
def test_operations_of_products(function: Any, products: int) -> None:
    traced = jax.jit(function).trace(jax.ShapeDtypeStruct((8, 8), jnp.float32))
    assert flops(traced.jaxpr.jaxpr) == products * 2 * 8**3
