"""A model card: what a file of params is, how it was trained, and how well it plays."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from hackmatrix.core.version import __version__
from hackmatrix.learning.settings.config import OPTIONS
from hackmatrix.research.evaluation.statistics import Estimate, estimate
from hackmatrix.runs.folder import STARTS, starts_in
from hackmatrix.runs.params import Exported, flat

if TYPE_CHECKING:
    from hackmatrix.research.evaluation.report import Report

_LONGEST = 200  # characters of a fact


def model_card(name: str, agent: Exported, report: "Report | None" = None) -> str:
    """The card of exported params, in Markdown.

    Args:
        name: of the file that it is about.
        agent: the params, with the facts beside them.
        report: games that were played for it; without one the card has the evaluation that its
            training recorded.
    """
    about, size = agent.about, sum(array.size for _, array in flat(agent.params))
    settings = about.get("config") or {}
    steps = about.get("timesteps")
    facts = {
        "environment": about.get("environment"),
        "network": settings.get("architecture"),
        "params": f"{size:,} in {len(list(flat(agent.params)))} arrays",
        "trained": isinstance(steps, int) and f"{steps:,} steps, {about.get('update')} updates",
        "seed": settings.get("seed"),
        "hackmatrix": about.get("version"),
        **_start(agent.path),
        "from": f"`{agent.path}`, written by hackmatrix {__version__}",
    }
    known = [(key, value) for key, value in facts.items() if value not in (None, False, "")]
    parts = [
        f"# {_plain(name)}",
        "An agent of hackmatrix.",
        _table(("fact", "value"), known),
        "## Data",
        _origin(about),
        "## Evaluation",
        *(_of_report(report) if report is not None else _training_evaluation(about)),
    ]
    if settings:
        parts += [
            "## Settings",
            "Those that are not the defaults of `hackmatrix train`:",
            f"```yaml\n{yaml.safe_dump(_unusual(settings), sort_keys=False)}```",
        ]
    return "\n\n".join(parts) + "\n"


def _origin(about: Mapping[str, Any]) -> str:
    """What it learned from."""
    settings = about.get("config") or {}
    apart = "Games of evaluations were not among them: their seeds are never trained on."
    if isinstance(cloned := about.get("cloned"), dict):
        return f"It learned from recorded games of a player: {_plain(cloned.get('data'))}. {apart}"
    if isinstance(about.get("timesteps"), int):
        file = settings.get("init_from")
        first = f", beginning with the params of {_plain(file)}" if file else ""
        return f"It learned by playing, from its own games{first}. {apart}"
    return "It is not recorded what it learned from."


def _start(path: Path) -> dict[str, Any]:
    """Commit, machine, versions and date of the last process that trained the run of a path."""
    for folder in (path, *path.parents[:3]):
        if folder.is_dir() and (folder / STARTS).is_file():
            for start in reversed(starts_in((folder / STARTS).read_bytes())):
                versions = start.get("versions")
                told = versions if isinstance(versions, dict) else {}
                names = ("commit", "device", "processor", "date")
                listed = ", ".join(f"{key} {value}" for key, value in told.items())
                return {**{name: start.get(name) for name in names}, "versions": listed}
    return {}


def _of_report(report: "Report") -> Iterator[str]:
    limits = report.limits
    yield (
        f"{report.episodes:,} games of seed {limits.seed}, at most {limits.max_steps:,} actions "
        f"each, {report.truncated:,} cut off; sampled actions; 95 % intervals."
    )
    pairs = zip(report.columns, report.estimates, strict=True)
    yield _estimates([(column.title, found) for column, found in pairs])


def _training_evaluation(about: Mapping[str, Any]) -> Iterator[str]:
    evaluation, settings = about.get("evaluation"), about.get("config") or {}
    games = settings.get("eval_episodes")
    if not isinstance(evaluation, dict):
        yield "None is recorded; `--evaluate GAMES` plays some for this card."
        return
    yield (
        f"Recorded in training, in {games or 'some'} games that chose these params among others, "
        "which flatters them; `--evaluate GAMES` plays others for this card."
    )
    estimates = []
    for name, value in evaluation.items():
        if not isinstance(value, int | float):
            continue
        if name.endswith("_rate") and isinstance(games, int) and games > 0:
            estimates.append((name, estimate(np.arange(games) < round(value * games))))
        else:
            estimates.append((name, Estimate(value, math.nan, math.nan)))
    yield _estimates(estimates)


def _estimates(estimates: Sequence[tuple[str, Estimate]]) -> str:
    rows = [
        (title, f"{mean:.4g}", f"{low:.4g} to {high:.4g}" if math.isfinite(low) else "-")
        for title, (mean, low, high) in estimates
    ]
    return _table(("", "mean", "95 % interval"), rows)


def _unusual(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not the defaults."""
    return {
        name: value
        for name, value in settings.items()
        if name in OPTIONS and value not in (OPTIONS[name].default, str(OPTIONS[name].default))
    }


def _table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_plain, line))} |" for line in lines)


def _plain(value: Any) -> str:
    """A fact on one line of a table, whatever its file says."""
    return " ".join(str(value).split())[:_LONGEST].replace("|", "\\|")
