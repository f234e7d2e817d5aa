"""The levels of a curriculum: what a file may say, and how a run takes them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.core.yaml_file import CURRICULA
from hackmatrix.environments.curriculum.levels import Advance, Curriculum, Level, Span
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import dump_config, read_config
from hackmatrix.learning.settings.resolve import resolve

LAST: dict[str, Any] = {}


def of(*levels: Any) -> Curriculum:
    return Curriculum.of(list(levels))


def test_a_level_is_the_real_game_but_for_what_it_says() -> None:
    level = {"stages": [6, 8], "credits": 3, "transmissions": 0, "share": 1}
    advance = {"advance": {"win_rate": 0.25, "games": 1e3}}
    assert of(level | advance, LAST).levels == (
        Level(
            stages=Span(6, 8),
            credits=Span(3, 3),
            transmissions=0,
            advance=Advance("win_rate", 0.25, 1000),
        ),
        Level(),
    )


def test_what_a_run_saves_is_read_back_as_it_was(tmp_path: Path) -> None:
    curriculum = Curriculum.of(CURRICULA / "curriculum.yaml")
    config = TrainConfig.of(curriculum=curriculum, curriculum_start_level=2)
    path = tmp_path / "config.yaml"
    path.write_text(dump_config(config))
    assert resolve({}, read_config(path))[0] == config
    assert resolve({}, None, config.as_dict())[0] == config


def test_a_configuration_may_hold_the_levels_or_name_their_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"curriculum: {{levels: {CURRICULA / 'curriculum.yaml'}, start_level: 3}}")
    config, _ = resolve({}, read_config(path))
    assert config.environment.curriculum == Curriculum.of(CURRICULA / "curriculum.yaml")
    assert config.environment.curriculum_start_level == 3


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([], "must be a list of 1 to 100 levels, got []"),
        ({"stages": 2}, "must be a list of 1 to 100 levels, got {'stages': 2}"),
        ([3], "level 1: it must hold names with values, got 3"),
        ([{"stage": 3}], "level 1: unknown setting 'stage', did you mean stages?"),
        ([{"stages": 9}], "level 1: stages must be at least 1 and at most 8, got 9"),
        ([{"stages": [5, 3]}], "level 1: stages must go from low to high, got [5, 3]"),
        ([{"stages": [1, 2, 3]}], "stages must be a number or a range [low, high], got [1, 2, 3]"),
        ([{"siphons": 1.5}], "level 1: siphons must be a whole number, got 1.5"),
        ([{"transmissions": "few"}], "level 1: transmissions must be a number, got 'few'"),
        ([{"share": 1.1}], "level 1: share must be at least 0 and at most 1, got 1.1"),
        ([{}, {}], "level 1: needs advance, such as {stages_cleared: 2}, to go on"),
        ([{"advance": {"win_rate": 0.5}}], "level 1: is the last one, so there is nothing"),
        ([{"advance": {"win_rat": 0.5}}, {}], "unknown setting 'win_rat', did you mean win_rate?"),
        ([{"advance": {"games": 5}}, {}], "advance must name one of stages_cleared and win_rate"),
        ([{"advance": {"win_rate": 1, "games": 0}}, {}], "advance.games must be at least 1"),
        ([{"advance": 3}, {}], "level 1: advance must hold names with values, got 3"),
        ([{"share": 0, "advance": {"win_rate": 1}}, {}], "level 1: has share 0, so that no game"),
    ],
)
def test_wrong_levels_are_refused_in_one_line(tmp_path: Path, levels: Any, message: str) -> None:
    path = tmp_path / "levels.yaml"
    path.write_text(yaml.safe_dump({"curriculum": {"levels": levels}}))
    for read in (Curriculum.of, read_config):
        with pytest.raises(UserError) as raised:
            read(path)
        assert str(raised.value).startswith(f"{path}: ")
        assert "\n" not in str(raised.value)
    with pytest.raises(UserError) as raised:
        Curriculum.of(levels)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("levels: [{}]", "must hold one section, curriculum, with the list levels"),
        ("curriculum: {levels: other.yaml}", "must be a list of 1 to 100 levels, got 'other.y"),
        ("curriculum: [", "is not a YAML file ("),
    ],
)
def test_a_file_of_another_form_is_refused_in_one_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "levels.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as raised:
        Curriculum.of(path)
    assert str(raised.value).startswith(f"{path}: {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--curriculum nowhere.yaml", "--curriculum: nowhere.yaml: No such file or directory"),
        ("--curriculum-start-level 2", "--curriculum-start-level 2: needs --curriculum"),
        ("--curriculum FILE --curriculum-start-level 4", "--curriculum-start-level 4: of 3 levels"),
        ("--curriculum FILE --curriculum-start-level 0", "must be at least 1, got 0"),
    ],
)
def test_wrong_flags_are_one_line(
    flags: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(CURRICULA / "curriculum.yaml")
    assert main(["train", *flags.replace("FILE", file).split(), "--print-config"]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
