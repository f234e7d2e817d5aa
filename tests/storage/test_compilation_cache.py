"""Where compiled programs are kept."""

import subprocess
import sys
from pathlib import Path

import pytest

_CODE = """
from hackmatrix.storage.compilation_cache import enable_compilation_cache
enable_compilation_cache()
import jax, jax.numpy as jnp
jax.jit(lambda x: jnp.sin(x) + 1)(jnp.ones(3)).block_until_ready()
"""


@pytest.mark.parametrize(
    ("variables", "kept"),
    [
        ({}, "home/.cache/hackmatrix/jax"),
        ({"XDG_CACHE_HOME": "xdg"}, "xdg/hackmatrix/jax"),
        ({"JAX_COMPILATION_CACHE_DIR": "mine"}, "mine"),
        ({"JAX_COMPILATION_CACHE_DIR": ""}, None),
    ],
)
def test_programs_are_kept_where_they_are_wanted(
    variables: dict[str, str], kept: str | None, tmp_path: Path
) -> None:
    variables = {name: value and str(tmp_path / value) for name, value in variables.items()}
    environment = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", **variables}
    subprocess.run([sys.executable, "-c", _CODE], env=environment, check=True)
    entries = [path for path in tmp_path.rglob("*") if path.is_file()]
    if kept is None:
        assert entries == []
    else:
        assert entries
        assert all(path.is_relative_to(tmp_path / kept) for path in entries)
