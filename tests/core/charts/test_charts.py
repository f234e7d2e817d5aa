"""Axes and pictures."""

import math
from xml.etree import ElementTree

import pytest

from hackmatrix.core.charts import Bars, Intervals, Line, Panel, Points, ScalarField, picture
from hackmatrix.core.charts.axis import Axis, abbreviate

NAMESPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("low", "high", "log", "expected"),
    [
        (0.0, 10.0, False, [0, 2, 4, 6, 8, 10]),
        (-1.0, 1.0, False, [-1, -0.5, 0, 0.5, 1]),
        (1e-4, 1e-2, True, [1e-4, 1e-3, 1e-2]),
        (1e-4, 1e-3, True, [1e-4, 2e-4, 5e-4, 1e-3]),
        (1.0, 1.4, True, [1.0, 1.1, 1.2, 1.3, 1.4]),
    ],
)
def test_ticks_are_round(low: float, high: float, log: bool, expected: list[float]) -> None:
    edge = abs(low) * 1e-9  # rounding must not lose the first and the last one
    assert Axis("", low - edge, high * (1 + 1e-9), log).ticks() == pytest.approx(expected)


@pytest.mark.parametrize("values", [[], [math.nan], [3.0], [0.0], [-2.0, -2.0]])
@pytest.mark.parametrize("log", [False, True])
def test_there_is_always_room(values: list[float], log: bool) -> None:
    axis = Axis.over(values, "", log=log)
    assert axis.low < axis.high
    assert len(axis.ticks()) <= 12


def test_a_logarithmic_axis_places_decades_at_equal_distances() -> None:
    axis = Axis("", 1.0, 100.0, log=True)
    assert [axis.position(x) for x in (1.0, 10.0, 100.0)] == pytest.approx([0.0, 0.5, 1.0])


def test_numbers_are_short() -> None:
    assert [abbreviate(x) for x in (40e6, 2500, 0.0003, -1.5)] == ["40M", "2.5k", "0.0003", "-1.5"]


def test_a_picture_is_xml_with_all_that_is_finite_inside_its_frame() -> None:
    line = Line("<a>", [1, 2, 3], [1.0, math.nan, 3.0], [0.0, 1.0, 2.0], [2.0, 3.0, 4.0])
    points = Points("b", [1.0, 1000.0, math.nan], [1.0, 2.0, 3.0], ["x", "y", "z"], [0.0, 1.0, 0.5])
    panels = [
        Panel("one", "x", "y", [line]),
        Panel("two", "x", "y", [points], log_x=True),
        Panel("three", "share", "", [Bars("c", [0.8, 0.2])], rows=["lr", "gamma"]),
    ]
    root = ElementTree.fromstring(picture("<title>", panels))
    (polyline,) = root.iter(f"{NAMESPACE}polyline")
    assert len(polyline.attrib["points"].split()) == 2
    circles = list(root.iter(f"{NAMESPACE}circle"))
    assert len(circles) == 2
    assert all(58 <= float(circle.attrib["cx"]) <= 406 for circle in circles)
    assert all(float(rect.attrib["width"]) > 0 for rect in root.iter(f"{NAMESPACE}rect"))
    assert "<a>" in [text.text for text in root.iter(f"{NAMESPACE}text")]


def test_a_field_shades_each_cell_between_its_edges() -> None:
    field = ScalarField("f", [1.0, 10.0, 100.0], [0.0, 1.0], [[0.0, 0.5]])
    root = ElementTree.fromstring(picture("", [Panel("", "", "", [field], log_x=True)]))
    _, left, right = root.iter(f"{NAMESPACE}rect")  # the first is the ground
    assert [cell.attrib["fill-opacity"] for cell in (left, right)] == ["0.00", "0.50"]
    ends = float(left.attrib["x"]) + float(left.attrib["width"]), float(right.attrib["x"])
    assert ends[0] == pytest.approx(ends[1], abs=0.2)
    assert left.attrib["width"] == right.attrib["width"]  # decades are equally wide


def test_bars_that_follow_others_begin_where_those_end() -> None:
    marks = [Bars("a", [1.0, 2.0]), Bars("b", [3.0, 4.0], [1.0, 2.0])]
    root = ElementTree.fromstring(picture("", [Panel("", "", "", marks, rows=["up", "low"])]))
    bars = [rect for rect in root.iter(f"{NAMESPACE}rect") if "y" in rect.attrib and len(rect)]
    up, low, after_up, after_low = bars
    for bar, after in ((up, after_up), (low, after_low)):
        end = float(bar.attrib["x"]) + float(bar.attrib["width"])
        assert end == pytest.approx(float(after.attrib["x"]), abs=0.2)
        assert bar.attrib["y"] == after.attrib["y"]
    assert float(up.attrib["y"]) < float(low.attrib["y"])
    wide = [float(bar.attrib["width"]) / float(up.attrib["width"]) for bar in bars]
    assert wide == pytest.approx([1, 2, 3, 4], abs=0.02)
    assert [bar[0].text for bar in bars] == ["a: 1", "a: 2", "b: 3", "b: 4"]


def test_intervals_lie_around_their_means_beside_a_line_at_0() -> None:
    marks = [Intervals("", [2.0, 3.0], [1.0, 2.5], [3.0, 4.0])]
    names = ["a row with a name that is longer than others", "b"]
    root = ElementTree.fromstring(picture("", [Panel("", "", "", marks, rows=names)]))
    zero, *spans = [line.attrib["points"] for line in root.iter(f"{NAMESPACE}polyline")]
    left = float(zero.split(",")[0])
    assert left > 30 + 5 * len(names[0])  # the names have their room
    middles = [circle.attrib for circle in root.iter(f"{NAMESPACE}circle")]
    for span, middle in zip(spans, middles, strict=True):
        start, end = (tuple(map(float, point.split(","))) for point in span.split())
        assert left < start[0] < float(middle["cx"]) < end[0]
        assert start[1] == end[1] == float(middle["cy"])
    assert float(middles[0]["cy"]) < float(middles[1]["cy"])


def test_a_legend_takes_as_many_lines_as_it_needs() -> None:
    lines = [Line(f"a rather long name {number}", [0, 1], [0.0, 1.0]) for number in range(5)]
    root = ElementTree.fromstring(picture("", [Panel("", "", "", lines, ys=(0, 10))]))
    keys = [rect.attrib for rect in root.iter(f"{NAMESPACE}rect") if rect.get("height") == "10"]
    assert [key["y"] for key in keys] == ["28", "28", "44", "44", "60"]
    assert "10" in [text.text for text in root.iter(f"{NAMESPACE}text")]  # in sight
    (panel,) = root.iter(f"{NAMESPACE}g")
    assert panel.attrib["transform"] == "translate(0,78)"
