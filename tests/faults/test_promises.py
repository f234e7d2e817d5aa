"""docs/reliability.md: every promise names a test that is there."""

import re

from paths import DOCS, ROOT


def test_every_promise_has_its_test() -> None:
    text = (DOCS / "reliability.md").read_text()
    promises = [row for row in text.splitlines() if row.startswith("| ") and row.count("|") > 4]
    promises = [row for row in promises if not row.startswith("| what happens |")]
    assert len(promises) > 15
    for row in promises:
        assert re.search(r"`tests/[\w/]+\.py", row), row
    for file, function in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text):
        source = (ROOT / file).read_text()
        assert f"def {function}(" in source or not function, f"{file}::{function}"
