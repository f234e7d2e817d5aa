"""Several agents on the same games: their differences, and the page."""

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hackmatrix.core.errors import UserError
from hackmatrix.environments.interface.report import Column
from hackmatrix.research.evaluation.contest import Contest, Entrant
from hackmatrix.research.evaluation.findings import find
from hackmatrix.research.evaluation.html_report import page, write_page
from hackmatrix.research.evaluation.plain_games import PlainGame, play_games
from hackmatrix.research.evaluation.report import Report
from hackmatrix.research.evaluation.statistics import estimate

pytestmark = pytest.mark.thorough


def report(stages: list[float], won: list[bool]) -> Report:
    columns = [
        Column("return", "mean_return", np.zeros(len(stages))),
        Column("stages cleared", "mean_stages_cleared", np.array(stages)),
        Column("win rate", "win_rate", np.array(won)),
        Column("length", "mean_length", np.ones(len(stages))),
    ]
    ended = np.ones(len(stages), bool)
    return Report(len(stages), columns, [estimate(each.values) for each in columns], ended, [])


def entrants(games: int = 400) -> list[Entrant]:
    """The second clears half a stage more in each game, however different the games are."""
    stages = [float(number % 8) for number in range(games)]
    won = [number % 8 == 7 for number in range(games)]
    better = [number + 0.5 + number % 2 / 100 for number in stages]
    return [Entrant("one", report(stages, won)), Entrant("<other>", report(better, won))]


def test_paired_differences_are_known_better_than_means() -> None:
    contest = Contest(entrants())
    (difference,) = contest.differences
    mean, low, high = difference["mean_stages_cleared"]
    assert mean == pytest.approx(0.505)
    assert 0.5 < low <= mean <= high < 0.51
    first, second = contest.as_dict()["agents"]
    assert first["mean_stages_cleared_ci"][1] - first["mean_stages_cleared_ci"][0] > 0.3
    assert "minus_first" not in first
    assert second["minus_first"]["win_rate"] == {"mean": 0.0, "ci": [0.0, 0.0]}
    assert set(second["minus_first"]) == {"mean_stages_cleared", "win_rate"}
    lines = contest.table().splitlines()
    assert [line.split("  ")[0] for line in lines] == ["agent", "one", "<other>", ""]
    assert lines[3].startswith("  minus the first  +0.505  [+0.50")


class Tags(HTMLParser):
    """Checks that tags are closed in order, and collects their names and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag, *(f" {name}" for name, _ in attrs)}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        self.open += [tag] * (tag != "meta")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    accounts = play_games([PlainGame("scripted", 1, number, 60) for number in range(5)])
    found = find(accounts)
    one, other = entrants()
    told = page([one, other._replace(report=other.report._replace(findings=found))], seed=1)
    seen = Tags(told).seen
    assert {"svg", "path", "text", "table", "figure"} <= seen
    assert not {"script", "link", "img", "iframe", " src", " href"} & seen
    assert "&lt;other&gt;" in told
    assert "<other>" not in told
    assert told.count("<table>") == 2 + len(found.tables())


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--report .*missing/page.html: "):
        write_page(tmp_path / "missing" / "page.html", entrants(8), 0)
