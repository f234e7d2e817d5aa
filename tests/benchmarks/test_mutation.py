"""`benchmarks.mutation`: changes of rules, and whether the rule tests notice them."""

import pytest
from paths import ROOT

from benchmarks.mutation import FILES, LEARNER, TESTS, Mutant, pytest_arguments, survives


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
