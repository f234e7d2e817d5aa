"""Figures as texts of SVG files."""

import math
from xml.etree import ElementTree

import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.research import figures
from hackmatrix.research.figures import abbreviate, colours_of, label, line, name_rows, panels, svg

pytestmark = pytest.mark.thorough


def test_numbers_are_short() -> None:
    assert [abbreviate(x) for x in (40e6, 2500, 0.0003, -1.5)] == ["40M", "2.5k", "0.0003", "-1.5"]


def drawn() -> str:
    figure, (first, second, third) = panels("<title>", 3, columns=2)
    line(first, [1, 2, 3], [1, 2, math.nan], ([0, 1, 2], [2, 3, 4]), colour="red", name="<a>")
    first.legend()
    second.barh([0, 1], [0.8, 0.2])
    third.set_xscale("log")
    third.plot([1, 1e6], [1, 2])
    for axes in (first, second, third):
        label(axes, "a panel", "steps", "score")
    name_rows(second, ["lr", "gamma"])
    return svg(figure)


def test_a_figure_is_xml_whose_texts_are_texts_and_always_the_same() -> None:
    text = drawn()
    assert text.startswith("<svg")
    root = ElementTree.fromstring(text)
    texts = ["".join(each.itertext()).strip() for each in root.iter() if each.tag.endswith("text")]
    assert {"<title>", "<a>", "lr", "gamma", "a panel", "steps", "score"} <= {*texts}
    assert texts.count("a panel") == 3
    assert "nan" not in text
    assert drawn() == text


def test_names_keep_their_colours() -> None:
    assert colours_of(["a", "b", "a"]) == {"a": figures.COLOURS[0], "b": figures.COLOURS[1]}


def test_without_matplotlib_a_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hackmatrix.core.imports.find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"needs matplotlib: pip install .*\[plots\]"):
        panels("title")
