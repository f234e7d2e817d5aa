"""The report of an evaluation as one page: HTML with its plots inside, no scripts, no links."""

from collections.abc import Sequence
from html import escape
from math import isfinite
from pathlib import Path
from typing import Any

from hackmatrix.core.errors import UserError, in_words
from hackmatrix.core.files import write_atomically
from hackmatrix.research.evaluation.contest import Contest, Entrant, figures_compared
from hackmatrix.research.evaluation.findings import KINDS, Findings
from hackmatrix.research.evaluation.streaks import FIGURES
from hackmatrix.research.evaluation.text_table import TextTable
from hackmatrix.research.figures import (
    COLOURS,
    ROW_HEIGHT,
    colours_of,
    label,
    line,
    name_rows,
    panels,
    svg,
)

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em;
       color: #1a202c; background: #fff; }
h1 { font-size: 1.5em; } h2 { margin-top: 2em; border-top: 1px solid #cbd5e0; padding-top: 1em; }
table { border-collapse: collapse; margin: 0.5em 0 1.5em; font-size: 0.9em; }
caption { text-align: left; font-weight: 600; margin: 0.4em 0; }
th, td { text-align: right; padding: 0.2em 0.7em; border-bottom: 1px solid #e2e8f0; }
th:first-child, td:first-child { text-align: left; }
figure { display: inline-block; margin: 1em 1em 0 0; vertical-align: top; }
svg { max-width: 100%; height: auto; }
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
    """The differences of the others from the first, column by column."""
    contest, (first, *others) = Contest(entrants), entrants
    parts = [f"<h2>Differences from {escape(first.name)}, on the same games</h2>"]
    for key, title in figures_compared(first.report).items():
        differences = [
            (other.name, differences[key])
            for other, differences in zip(others, contest.differences, strict=True)
            if all(map(isfinite, differences[key]))
        ]
        if differences:
            rows = [f"{name} {mean:+.3f}" for name, (mean, _, _) in differences]
            figure, (axes,) = panels(title, height=1 + ROW_HEIGHT * len(rows))
            axes.axvline(0, color="#ccc")
            for row, (_, (mean, low, high)) in enumerate(differences):
                axes.plot([low, high], [row, row], color=COLOURS[0], linewidth=2)
                axes.plot(mean, row, "o", color=COLOURS[0])
            label(axes, "")
            name_rows(axes, rows)
            parts.append(_figure(figure))
    return parts


def _survival(findings_by_name: Sequence[tuple[str, Findings]]) -> list[str]:
    """Of the games that enter a stage, those that clear it."""
    if not findings_by_name:
        return []
    figure, (axes,) = panels("share of the games entering a stage that clear it")
    colours = colours_of(name for name, _ in findings_by_name)
    for name, findings in findings_by_name:
        rows = findings.stages
        lows, highs = zip(*(row["cleared_ci"] for row in rows), strict=True)
        stages, rates = [row["stage"] for row in rows], [row["cleared"] for row in rows]
        line(axes, stages, rates, (lows, highs), colour=colours[name], name=name)
        axes.plot(stages, rates, "o", color=colours[name])
    label(axes, "", "stage")
    axes.set_ylim(-0.05, 1.05)
    axes.legend(fontsize=8, frameon=False)
    return [_figure(figure)]


def _agent(entrant: Entrant) -> list[str]:
    """One agent's means, plots and tables."""
    report = entrant.report
    titles = {column.key: column.title for column in report.columns} | FIGURES
    means = [
        (titles[key], *(f"{number:.3f}" for number in found))
        for key, found in report.figures().items()
    ]
    parts = [
        f"<h2>{escape(entrant.name)}</h2>",
        _table(TextTable("means", ("", "mean", "low", "high"), means)),
    ]
    if report.findings is not None:
        parts += _plots(report.findings)
        parts += map(_table, report.findings.tables())
    return parts


def _plots(findings: Findings) -> list[str]:
    parts = []
    if findings.deaths:
        stages = [f"stage {row['stage']}" for row in findings.deaths]
        deaths = {kind: [row[kind] for row in findings.deaths] for kind in KINDS}
        parts.append(_bars("deaths by kind of the last hit", "deaths", stages, deaths))
    if findings.programs:
        names = [row["program"] for row in findings.programs]
        uses = {"uses": [row["uses"] for row in findings.programs]}
        parts.append(_bars("programs run", "uses a game", names, uses))
    stages = [f"stage {row['stage']}" for row in findings.stages]
    siphonings = {"siphonings": [row["siphonings"] for row in findings.stages]}
    parts.append(_bars("siphonings in a stage", "siphonings", stages, siphonings))
    return parts


def _bars(title: str, x: str, rows: Sequence[str], sizes: dict[str, list[float]]) -> str:
    """A figure with a bar in each row, of parts that have names."""
    figure, (axes,) = panels(title, height=1 + ROW_HEIGHT * len(rows))
    starts = [0.0] * len(rows)
    for (name, lengths), colour in zip(sizes.items(), COLOURS, strict=False):
        axes.barh(range(len(rows)), lengths, 0.7, starts, color=colour, alpha=0.85, label=name)
        starts = [start + length for start, length in zip(starts, lengths, strict=True)]
    label(axes, "", x)
    name_rows(axes, rows)
    if len(sizes) > 1:
        axes.legend(fontsize=8, frameon=False)
    return _figure(figure)


def _figure(figure: Any) -> str:
    return f"<figure>{svg(figure)}</figure>"


def _table(table: TextTable) -> str:
    header = "".join(f"<th>{escape(name)}</th>" for name in table.header)
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(word)}</td>' for word in row)}</tr>" for row in table.rows
    )
    return f"<table><caption>{escape(table.title)}</caption><tr>{header}</tr>{rows}</table>"
