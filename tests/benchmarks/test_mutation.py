"""`benchmarks.mutation`: changes of rules, and whether the rule tests notice them."""

from pathlib import Path

import pytest
from paths import ROOT

from benchmarks.mutation import FILES, LEARNER, TESTS, Mutant, mutants, pytest_arguments, survives

RULE = '''
"""A rule."""

def rule(hp: int = 3) -> int:
    """Docstrings are left alone."""
    if hp < 1 and not hp == 0:
        state.events.append("hit")
        raise ValueError("at least 0")
    return min(hp - 1, 9)
'''


def changes(tmp_path: Path, source: str) -> list[tuple[int, str, str]]:
    file = tmp_path / "rule.py"
    file.write_text(source)
    return [(mutant.line, mutant.before, mutant.after) for mutant in mutants(file)]


def test_each_place_is_changed_alone(tmp_path: Path) -> None:
    found = changes(tmp_path, RULE)
    for change in [
        (4, "3", "4"),
        (4, "3", "2"),
        (6, "hp < 1", "hp <= 1"),
        (6, "hp < 1 and (not hp == 0)", "hp < 1 or not hp == 0"),
        (6, "not hp == 0", "hp == 0"),
        (7, "state.events.append('hit')", "pass"),
        (9, "min", "max"),
        (9, "hp - 1", "hp + 1"),
    ]:
        assert change in found
    assert len(found) == len(set(found))
    assert not [line for line, _, _ in found if line in (2, 5, 8)]


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.stem}.{file.stem}")
def test_every_mutant_of_the_rules_is_python_and_another_program(file: Path) -> None:
    sources = [mutant.source for mutant in mutants(file)]
    assert sources
    assert len({*sources}) == len(sources)
    for source in sources:
        compile(source, file, "exec")


def test_the_tests_that_run_are_there() -> None:
    assert len(LEARNER) > 20
    names = (*TESTS, *pytest_arguments(LEARNER))
    assert [
        name for name in names if name.startswith("tests/") and not (ROOT / name).exists()
    ] == []


@pytest.mark.slow
def test_a_broken_rule_is_noticed_and_a_comment_is_not() -> None:
    (file,) = (file for file in FILES if file.name == "combat.py")
    text = file.read_text()
    broken = text.replace("if enemy.hp > 0:", "if enemy.hp >= 0:")
    assert broken != text
    assert not survives(Mutant(file, 0, "", "", broken), [file])
    assert survives(Mutant(file, 0, "", "", f"{text}# a comment\n"), [file])
