"""docs/environment.md and docs/positions.md: examples run, and the table is what the code says."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import DOCS

import hackmatrix
from hackmatrix.environments.interface.spaces import Box
from hackmatrix.game.engine import Game


def run_examples(document: Path) -> dict[str, Any]:
    """The names that the Python examples of a document leave, run one after the other."""
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL):
        exec(compile(example, document.name, "exec"), names)
    return names


@pytest.mark.slow
def test_the_examples_of_the_environment_run(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_examples(DOCS / "environment.md")
    rewards = np.asarray(names["rewards"])
    assert (rewards.shape, rewards.dtype) == ((256, 100), np.float32)
    assert rewards.std() > 0
    assert names["env"].to_text(names["game"]) == names["text"]
    assert names["logged"].spec.observation.shape == (1545,)
    shown = capsys.readouterr().out
    assert shown.startswith("EnvState: return ")
    assert "\nplayer hp " in shown

    assert names["kind"].shape == names["hp"].shape == (8, 36)
    assert ((names["hp"] > 0) == (names["kind"] > 0)).all()
    assert names["credits"].shape == names["calm"].shape == (8,)
    assert (names["board"].argmax(axis=-1).reshape(8, 36) == names["kind"]).all()


def test_the_examples_of_positions_run() -> None:
    names = run_examples(DOCS / "positions.md")
    assert isinstance(names["game"], Game)
    assert names["env"].to_text(names["state"]) == names["game"].to_text()
    assert bytes(names["observation"]) == names["game"].observation()


def info_table() -> str:
    """The entries of `info` as docs/environment.md shows them."""
    rows = []
    for name, box in hackmatrix.make().spec.info.items():
        shape = f"[{', '.join(map(str, box.shape))}]" if box.shape else ""
        bounds = [bound if shown(box) else "" for bound in (box.low, box.high)]
        rows.append(f"| `{name}` | {box.dtype}{shape} | {bounds[0]} | {bounds[1]} |")
    return "\n".join(rows)


def shown(box: Box) -> bool:
    """Whether the bounds say more than the dtype."""
    return box.dtype != bool and bool(np.isfinite(box.high))


def test_the_entries_of_info_are_documented_as_they_are() -> None:
    assert (
        f"|---|---|---|---|\n{info_table()}\n<!-- end -->" in (DOCS / "environment.md").read_text()
    )
