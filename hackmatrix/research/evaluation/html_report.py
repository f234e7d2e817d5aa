"""The report of an evaluation as one page: HTML with its plots inside, no scripts, no links."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from hackmatrix.core.errors import UserError, in_words
from hackmatrix.core.files import write_atomically
from hackmatrix.research.evaluation.contest import Contest, Entrant
from hackmatrix.research.evaluation.findings import KINDS, Findings
from hackmatrix.research.evaluation.plots import Bars, Line, Mean, bar_plot, line_plot, mean_plot
from hackmatrix.research.evaluation.text_table import Table

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em;
       color: #1a202c; background: #fff; }
h1 { font-size: 1.5em; } h2 { margin-top: 2em; border-top: 1px solid #cbd5e0; padding-top: 1em; }
table { border-collapse: collapse; margin: 0.5em 0 1.5em; font-size: 0.9em; }
caption, figcaption { text-align: left; font-weight: 600; margin: 0.4em 0; }
th, td { text-align: right; padding: 0.2em 0.7em; border-bottom: 1px solid #e2e8f0; }
th:first-child, td:first-child { text-align: left; }
figure { margin: 1em 0; max-width: 700px; } svg { width: 100%; } svg text { font-size: 12px; }
.axis { stroke: #cbd5e0; } .legend span { margin-right: 1.2em; }
.legend i { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.4em; }
"""


def write_page(path: Path, entrants: Sequence[Entrant], seed: int) -> None:
    """Writes the page, or leaves what was there.

    Args:
        path: the file.
        entrants: at least one agent.
        seed: of the games.

    Raises:
        UserError: the file can't be written.
    """
    try:
        write_atomically(path, page(entrants, seed).encode())
    except OSError as error:
        raise UserError(f"--report {path}: {in_words(error)}") from None


def page(entrants: Sequence[Entrant], seed: int) -> str:
    """The page as HTML."""
    games = entrants[0].report.episodes
    parts = [
        "<h1>HackMatrix: an evaluation</h1>",
        f"<p>{games:,} games of seed {seed}; bounds are 95 % intervals.</p>",
    ]
    if len(entrants) > 1:
        parts += _comparison(entrants)
    found = [(entrant.name, entrant.report.findings) for entrant in entrants]
    parts += _survival([(name, findings) for name, findings in found if findings is not None])
    for entrant in entrants:
        parts += _agent(entrant)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f"<title>HackMatrix: an evaluation</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _comparison(entrants: Sequence[Entrant]) -> list[str]:
    """How the others differ from the first, column by column."""
    contest, (first, *others) = Contest(entrants), entrants
    parts = [f"<h2>Differences from {escape(first.name)}, on the same games</h2>"]
    for column in first.report.columns:
        means = [
            Mean(other.name, *differences[column.key])
            for other, differences in zip(others, contest.differences, strict=True)
            if column.key in differences
        ]
        if means:
            parts.append(mean_plot(means, title=column.title))
    return parts


def _survival(found: Sequence[tuple[str, Findings]]) -> list[str]:
    """Of the games that enter a stage, those that clear it."""
    lines = []
    for name, findings in found:
        rows = findings.stages
        lows, highs = zip(*(row["cleared_ci"] for row in rows), strict=True)
        stages, rates = [row["stage"] for row in rows], [row["cleared"] for row in rows]
        lines.append(Line(name, stages, rates, lows, highs))
    title = "share of the games entering a stage that clear it"
    return [line_plot(lines, title=title, x="stage", highest=1.0)] if lines else []


def _agent(entrant: Entrant) -> list[str]:
    """One agent's means, plots and tables."""
    report = entrant.report
    means = [
        (column.title, f"{found.mean:.3f}", f"{found.low:.3f}", f"{found.high:.3f}")
        for column, found in zip(report.columns, report.estimates, strict=True)
    ]
    parts = [
        f"<h2>{escape(entrant.name)}</h2>",
        _table(Table("means", ("", "mean", "low", "high"), means)),
    ]
    if report.findings is not None:
        parts += _plots(report.findings)
        parts += map(_table, report.findings.tables())
    return parts


def _plots(findings: Findings) -> list[str]:
    parts = []
    if findings.deaths:
        stages = [str(row["stage"]) for row in findings.deaths]
        killers = [Bars(kind, [row[kind] for row in findings.deaths]) for kind in KINDS]
        parts.append(bar_plot(stages, killers, title="deaths by kind of the last hit", x="stage"))
    if findings.programs:
        names = [row["program"] for row in findings.programs]
        uses = [Bars("uses a game", [row["uses"] for row in findings.programs])]
        parts.append(bar_plot(names, uses, title="programs run, uses a game", x=""))
    stages = [str(row["stage"]) for row in findings.stages]
    siphonings = [Bars("siphonings", [row["siphonings"] for row in findings.stages])]
    parts.append(bar_plot(stages, siphonings, title="siphonings in a stage", x="stage"))
    return parts


def _table(table: Table) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(word)}</td>' for word in row)}</tr>" for row in table.rows
    )
    return f"<table><caption>{escape(table.title)}</caption><tr>{header}</tr>{rows}</table>"
