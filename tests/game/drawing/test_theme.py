"""The table that everything draws by is plain data of the forms it promises."""

import re

import pytest

from hackmatrix.game.drawing.shapes import SHAPES
from hackmatrix.game.drawing.theme import ANCHORS, COLOURS, LOOK, STEPS, TEXT_ANCHORS
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS

PATH = re.compile(r"(M\d+(\.\d+)? \d+(\.\d+)?( L\d+(\.\d+)? \d+(\.\d+)?)+( Z)?( |$))+")


def test_every_path_is_straight_lines_between_absolute_points() -> None:
    paths = [path for layers in SHAPES.values() for _, _, path in layers]
    for path in [*paths, *LOOK["letters"].values()]:
        assert PATH.fullmatch(path), path


def test_shapes_stay_in_their_square() -> None:
    for name, layers in SHAPES.items():
        points = [float(x) for _, _, path in layers for x in re.findall(r"[\d.]+", path)]
        assert 0 <= min(points) <= max(points) <= 100, name


def test_every_kind_has_a_shape_of_its_own() -> None:
    kinds = ["player", *(kind.name.lower() for kind in EnemyType), "transmission", "last_seen"]
    kinds += ["siphon", "exit", "credits", "energy", *(program.name for program in PROGRAMS)]
    assert len({SHAPES[kind] for kind in kinds}) == len(kinds)


def test_every_program_can_be_written() -> None:
    assert set("".join(program.name for program in PROGRAMS)) <= LOOK["letters"].keys()
    assert set("0123456789?") <= LOOK["letters"].keys()


def test_shapes_are_painted_in_known_colours() -> None:
    paints = {paint for layers in SHAPES.values() for paint, _, _ in layers}
    assert paints <= COLOURS.keys() | {"ink"}


def test_places_lie_in_the_cell() -> None:
    for name, (x, y, size) in ANCHORS.items():
        assert min(x, y) >= 0, name
        assert max(x, y) + size <= 100, name
    for name, (x, y, width, height, align) in TEXT_ANCHORS.items():
        assert min(x, y) >= 0, name
        assert max(x + width, y + height) <= 100, name
        assert 0 <= align <= 1, name
    assert STEPS.keys() <= ANCHORS.keys()


def lightness(colour: str) -> float:
    """Relative luminance of a colour, as the accessibility guidelines (WCAG 2) define it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(ink: str, ground: str) -> float:
    low, high = sorted(lightness(COLOURS[name]) for name in (ink, ground))
    return (high + 0.05) / (low + 0.05)


GROUNDS = {"background", "plate", "fire", "hollow", "data", "program", "question"}
READ = sorted(COLOURS.keys() - GROUNDS - {"edge", "faint"})


@pytest.mark.parametrize("ground", ["background", "plate", "fire", "hollow"])
def test_what_is_read_stands_out(ground: str) -> None:
    assert {ink for ink in READ if contrast(ink, ground) < 4.5} == set()


@pytest.mark.parametrize("ground", ["data", "program", "question"])
def test_text_on_blocks_stands_out(ground: str) -> None:
    assert contrast("text", ground) >= 4.5
