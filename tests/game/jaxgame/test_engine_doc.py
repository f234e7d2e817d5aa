"""`docs/jax-engine.md` says what the code does: its examples are run, its table is made here."""

import doctest
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import jax
import jax.numpy as jnp
from paths import DOCS

import hackmatrix
from hackmatrix.game.jaxgame import dice, state
from hackmatrix.game.jaxgame.bitboard import Set32, Set36
from hackmatrix.game.jaxgame.dice import Dice
from hackmatrix.game.jaxgame.game import new_game

DOCUMENT = DOCS / "jax-engine.md"
PACKAGE = Path(hackmatrix.__file__).parent


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


def comments(kind: type, module: Any) -> dict[str, tuple[str, str]]:
    """For each field that a class of a module adds: how its type is written, and its comment."""
    source = Path(module.__file__).read_text()
    (body,) = re.findall(rf"^class {kind.__name__}\b.*?\n(.*?)(?=^\S|\Z)", source, re.S | re.M)
    found = re.findall(r"^    (\w+): (\S+)(?:  # (.*))?$", body, re.M)
    return {name: (written, comment) for name, written, comment in found}


def rows(tree: Any, kind: type, prefix: str) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, number of scalars and meaning of each field, nested ones in their place."""
    texts = {k: v for base in reversed(kind.__mro__) for k, v in _own_comments(base).items()}
    names = [f.name for f in fields(kind)] if is_dataclass(kind) else kind._fields  # type: ignore[attr-defined]
    for name in names:
        value, kind_of_field = getattr(tree, name), get_type_hints(kind)[name]
        if is_dataclass(kind_of_field) or kind_of_field is Dice:
            yield from rows(value, kind_of_field, f"{prefix}{name}.")
            continue
        written, comment = texts[name]
        leaves = jax.tree.leaves(value)
        if written == "jax.Array":
            shape = list(value.shape)
            written = f"{value.dtype}{shape if shape else ''}"
            comment = re.sub(rf"^{value.dtype}(\[.*?\])?, ", "", comment)
        scalars = str(len(leaves)) if not leaves[0].shape else "rows"
        yield f"{prefix}{name}", written, scalars, comment


def _own_comments(kind: type) -> dict[str, tuple[str, str]]:
    if kind.__module__ not in (state.__name__, dice.__name__):
        return {}
    return comments(kind, state if kind.__module__ == state.__name__ else dice)


def state_table() -> str:
    name = jnp.uint32(0)
    new = jax.eval_shape(new_game, name, name)
    lines = ["| field | type | scalars | meaning |", "|---|---|---:|---|"]
    lines += [f"| `{a}` | `{b}` | {c} | {d} |" for a, b, c, d in rows(new, state.State, "")]
    scalars = sum(not leaf.shape for leaf in jax.tree.leaves(new))
    return "\n".join([*lines, f"| all | | {scalars} | |"])


def test_every_field_of_the_state_is_documented() -> None:
    table = state_table()
    assert table in DOCUMENT.read_text(), table


def test_every_field_has_a_meaning() -> None:
    for line in state_table().splitlines()[2:-1]:
        _, _, written, scalars, meaning, _ = (part.strip() for part in line.split("|"))
        assert meaning, line
        if written in ("`CellSet`", "`EnemySet`"):
            assert int(scalars) == len((Set36 if written == "`CellSet`" else Set32)._fields)
