"""Options of a command: their types, ranges and choices, and how the command line gives them."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from paths import DOCS

from hackmatrix.cli.arguments import parse, parse_explicit
from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option, options_of

SHAPES = {"square": "a module", "circle": "another"}


@dataclass(frozen=True)
class Drawing:
    files: tuple[Path, ...] = option(dataclasses.MISSING, "what to draw", common=True)
    shape: str = option("square", "outline", choices=SHAPES, section="look")
    color: Literal["red", "blue"] | None = option(None, "ink", section="look", common=True)
    size: float = option(1.0, "width", above=0, at_most=10, aliases=("width",))
    copies: int = option(1, "how many", at_least=1)
    border: bool = option(True, "a line around it")
    filled: bool = option(False, "paint the inside")
    shadow: bool = option(False, "paint a shadow", section="look")

    def __post_init__(self) -> None:
        check(self)


def drawing(*argv: str) -> Drawing:
    return parse(Drawing, argv, command="draw", purpose="Draws.", example="  draw a\n      draws a")


def test_fields_become_flags_and_positional_arguments() -> None:
    assert drawing("a", "b/c") == Drawing((Path("a"), Path("b/c")))
    flags = ["--shape=circle", "--color=red", "--width=2e0", "--copies=1_000", "--no-border"]
    found = drawing("a", *flags, "--filled", "--shadow")
    assert found == Drawing((Path("a"),), "circle", "red", 2.0, 1000, False, True, True)
    assert drawing("a", "--no-shadow") == Drawing((Path("a"),))


def test_several_dataclasses_share_a_command_line() -> None:
    @dataclass(frozen=True)
    class Paper:
        paper: str = option("A4", "format")

    rest: dict[str, Any] = {"command": "draw", "purpose": "", "example": ""}
    given = parse_explicit(
        [options_of(Drawing), options_of(Paper)], ["a", "--paper", "A5", "--size", "3"], **rest
    )
    assert given == [{"files": (Path("a"),), "size": 3.0}, {"paper": "A5"}]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "the following arguments are required: files"),
        (["a", "--shape", "cube"], "argument --shape: must be one of square, circle, got 'cube'"),
        (["a", "--color", "x"], "argument --color: must be one of red, blue, got 'x'"),
        (["a", "--width", "0"], "argument --size/--width: must be above 0 and at most 10, got 0.0"),
        (["a", "--copies", "x"], "argument --copies: must be a number, got 'x'"),
        (["a", "--no-filled"], "unknown argument --no-filled, did you mean --filled?"),
        (["a", "--shap", "circle"], "unknown argument --shap, did you mean --shape?"),
        (["a", "--zzz"], "unknown argument --zzz, see `draw --help`"),
    ],
)
def test_wrong_arguments_are_named(argv: list[str], message: str) -> None:
    with pytest.raises(UserError) as raised:
        drawing(*argv)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": "cube"}, "--shape must be one of square, circle, got 'cube'"),
        ({"color": "green"}, "--color must be one of red, blue, got 'green'"),
        ({"size": float("nan")}, "--size must be above 0 and at most 10, got nan"),
        ({"copies": 0}, "--copies must be at least 1, got 0"),
    ],
)
def test_a_dataclass_with_a_wrong_value_can_not_be_made(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as raised:
        Drawing((), **settings)
    assert str(raised.value) == message


def test_choices_added_to_a_table_later_are_valid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(SHAPES, "cube", "a third")
    assert Drawing((), shape="cube").shape == "cube"
    assert drawing("a", "--shape", "cube").shape == "cube"
    assert options_of(Drawing)["shape"].convert("cube") == "cube"
    with pytest.raises(SystemExit):
        drawing("--help")
    assert "--shape {square,circle,cube}" in capsys.readouterr().out


def test_help_tells_defaults_ranges_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        drawing("--help")
    out = " ".join(capsys.readouterr().out.split())
    for text in (
        "--color {red,blue} ink ",
        "--size FLOAT, --width FLOAT width (above 0 and at most 10, default 1.0)",
        "--border, --no-border a line around it (default on)",
        "--filled paint the inside",
        "--shadow, --no-shadow paint a shadow",
        "files what to draw",
    ):
        assert text in out
    assert out.endswith("example: draw a draws a")


def test_help_shows_the_common_options_alone(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    rest: dict[str, Any] = {"command": "draw", "purpose": "", "example": "", "has_help_all": True}
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit, match="0"):
            parse_explicit([options_of(Drawing)], [flag], **rest)
        shown[flag] = capsys.readouterr().out
    assert shown["--help"].startswith("usage: draw [OPTIONS] FILES...\n")
    assert "--help-all" in shown["--help"]
    assert "--color" in shown["--help"]
    assert "--shape" not in shown["--help"]
    assert "--shape" in shown["--help-all"]


def test_documents_are_named_with_their_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    assert "docs/networks.md" in capsys.readouterr().out.split()
    assert main(["--help"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"Documents that it names, such as docs/networks.md, lie in {DOCS}"


@pytest.mark.parametrize("value", [None, "blue"])
def test_none_is_a_value_of_optional_options_alone(value: str | None) -> None:
    assert options_of(Drawing)["color"].convert(value) == value
    with pytest.raises(ValueError, match="must be one of"):
        options_of(Drawing)["shape"].convert(None)
    with pytest.raises(ValueError, match="must be a number"):
        options_of(Drawing)["size"].convert(None)
