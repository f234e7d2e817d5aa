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

UPDATES = {  # kernels, those by index, bytes, all-reduces, bytes of all-reduces
    "v4-8": (124_962, 13_212, 245_000_000, 777, 141_000_000),
    "v6e-8": (126_366, 13_212, 71_000_000, 777, 141_000_000),
    "h100": (74_436, 17_942, 570_000_000, 0, 0),
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
    measured = [update[name] for name in ("kernels", "kernels_by_index", "bytes")]
    measured += [report[name] for name in ("all_reduces", "all_reduced_bytes")]
    assert measured == [pytest.approx(figure, rel=0.1) for figure in UPDATES[target]]
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
