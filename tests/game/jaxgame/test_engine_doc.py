"""`docs/jax-engine.md` says what the code does: its examples are run."""

import doctest
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from paths import DOCS

import hackmatrix
from hackmatrix.game.jaxgame.game import new_game

DOCUMENT = DOCS / "jax-engine.md"
PACKAGE = Path(hackmatrix.__file__).parent


@pytest.mark.slow
def test_the_examples_run() -> None:
    """All of them in turn, as one session; what they print is as the document says."""
    examples = re.findall(r"```pycon\n(.*?)```", DOCUMENT.read_text(), re.S)
    test = doctest.DocTestParser().get_doctest("\n".join(examples), {}, DOCUMENT.name, None, 0)
    assert len(test.examples) > 20
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    assert runner.run(test, out=report.append).failed == 0, "".join(report)


def test_the_lines_shown_are_those_of_the_code() -> None:
    shown = re.findall(r"```python\n# (\S+)\n(.*?)```", DOCUMENT.read_text(), re.S)
    assert len(shown) == DOCUMENT.read_text().count("```python")
    for file, lines in shown:
        assert lines in (PACKAGE / file).read_text(), lines


def test_the_number_of_scalars_is_that_of_the_state() -> None:
    name = jnp.uint32(0)
    leaves = jax.tree.leaves(jax.eval_shape(new_game, name, name))
    scalars = sum(not leaf.shape for leaf in leaves)
    assert f"The state has {scalars} scalars" in DOCUMENT.read_text()
