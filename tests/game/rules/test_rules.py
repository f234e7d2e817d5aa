"""Every case of the text files beside this one, on every engine."""

from pathlib import Path

import pytest
from rule_cases import Case, Engine, check, read_cases

FILES = sorted(Path(__file__).parent.glob("*.txt"))
CASES = [
    pytest.param(case, id=f"{file.stem}: {case.rule}")
    for file in FILES
    for case in read_cases(file)
]


@pytest.mark.parametrize("case", CASES)
def test_rule(engine: Engine, case: Case) -> None:
    check(engine, case)
