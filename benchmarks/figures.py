"""The figures of README and docs/performance.md, each measured by the command beside it."""

import json
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import RESULTS, run_command
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import write_atomically
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- figures: python -m benchmarks.figures -->\n", "<!-- end of the figures -->\n"
SEEDS = range(5)

Found = Mapping[str, Any]


class Figure(NamedTuple):
    """A row of the table."""

    title: str
    command: str  # `{seed}` in it stands for each of SEEDS; `&&` joins two lines
    keys: tuple[str, ...]  # of the command's JSON, which are kept
    text: Callable[[Sequence[Found]], str]  # the results of the command, one for each seed


def _speed(found: Sequence[Found]) -> str:
    return f"{found[0]['median']:,.0f} steps/s"


def _wins(found: Sequence[Found]) -> str:
    (rates,) = found
    low, high = rates["win_rate_ci"]
    share = f"{100 * rates['win_rate']:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{share} of {rates['episodes']:,} games"


def _wins_of_seeds(found: Sequence[Found]) -> str:
    rates = [rates["win_rate"] for rates in found]
    shares = ", ".join(f"{100 * rate:.0f}" for rate in rates)
    return f"{100 * statistics.mean(rates):.0f} % of games ({shares} % for seeds 0 to 4)"


_RATES = ("win_rate", "win_rate_ci", "episodes")
_SPEEDS = ("median", "min", "max", "num_envs")

FIGURES = {
    "agent": Figure("the shipped agent wins", "hackmatrix evaluate --episodes 2000", _RATES, _wins),
    "search": Figure(
        "- with a search of 8 simulations before each action",
        "hackmatrix evaluate shipped@8 --episodes 1000 --seed 5",
        _RATES,
        _wins,
    ),
    "scripted": Figure(
        "the scripted player wins", "hackmatrix evaluate scripted --seed 5", _RATES, _wins
    ),
    "random": Figure("random play wins", "hackmatrix evaluate random", _RATES, _wins),
    "learned": Figure(
        "an agent trained by `make train` wins",
        "hackmatrix train --config fast --total-timesteps 36_000_000 --num-devices 2 --seed {seed} "
        "--run-name learned{seed} --checkpoint-dir build/figures && hackmatrix evaluate "
        "build/figures/learned{seed}",
        _RATES,
        _wins_of_seeds,
    ),
    "env": Figure(
        "the game under random play, on two CPU cores", "hackmatrix bench env", _SPEEDS, _speed
    ),
    "harder": Figure(
        "- in late stages, among many enemies",
        "hackmatrix bench env --play harder",
        _SPEEDS,
        _speed,
    ),
    "train": Figure(
        "training, on two CPU cores",
        "hackmatrix bench train --num-steps 128 --observation tactical",
        (*_SPEEDS, "fraction_of_limit"),
        _speed,
    ),
}
# The documents with a table, and its rows.
TABLES: dict[Path, Sequence[str]] = {
    ROOT / "README.md": ("agent", "learned", "env"),
    ROOT / "docs" / "performance.md": tuple(FIGURES),
}


@dataclass(frozen=True)
class FiguresOptions(Options):
    """The command's options."""

    only: str = option(",".join(FIGURES), "figures to measure, separated by commas; empty for none")
    out: Path = option(RESULTS / "figures.json", "file of all figures")


class Measured(NamedTuple):
    """The figures by name, as the file has them."""

    figures: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The file's content."""
        return self.figures

    def text(self) -> str:
        """The table of all figures."""
        return table(self.figures, tuple(FIGURES))


def measure(options: FiguresOptions) -> Measured:
    """Measures figures, and writes the file and the documents' tables.

    Raises:
        UserError: there is no figure of a name, or a command fails.
    """
    names = [name for name in options.only.split(",") if name]
    if unknown := [name for name in names if name not in FIGURES]:
        raise UserError(f"--only: no figure {unknown[0]}; there are {', '.join(FIGURES)}")
    figures = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in names:
        figures[name] = _measured(FIGURES[name])
        content = json.dumps({name: figures[name] for name in FIGURES if name in figures}, indent=1)
        write_atomically(options.out, f"{content}\n".encode())
    for document, rows in TABLES.items():
        document.write_text(with_table(document.read_text(), figures, rows))
    return Measured(figures)


def _measured(figure: Figure) -> dict[str, Any]:
    seeds = SEEDS if "{seed}" in figure.command else SEEDS[:1]
    results = [_result(figure.command.format(seed=seed)) for seed in seeds]
    return {
        "command": figure.command,
        "results": [{key: result[key] for key in figure.keys} for result in results],
        **machine.machine(),
        **machine.versions(),
    }


def _result(command: str) -> dict[str, Any]:
    *before, last = command.split(" && ")
    for line in before:
        _run(line)
    result: dict[str, Any] = json.loads(_run(f"{last} --json").splitlines()[-1])
    return result


def _run(line: str) -> str:
    print(f"+ {line}", file=sys.stderr, flush=True)
    words = [sys.executable, "-m", *shlex.split(line)]
    done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise UserError(f"`{line}` ended with exit code {done.returncode}")
    return done.stdout


def table(figures: Mapping[str, Any], names: Sequence[str]) -> str:
    """Some of the figures as a table in Markdown, with the machine and the dates."""
    shown = {name: figures[name] for name in names if name in figures}
    rows = ["| | | measured by |", "|---|---|---|"]
    for name, measured in shown.items():
        figure = FIGURES[name]
        command = "make train" if name == "learned" else figure.command
        rows.append(f"| {figure.title} | {figure.text(measured['results'])} | `{command}` |")
    machines = sorted({f"{f['cores']} cores of an {f['processor']}" for f in shown.values()})
    dates = sorted({f["date"] for f in shown.values()})
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    note = f"{' and '.join(machines)}, no accelerator, {when}; 95 % intervals."
    return "\n".join([*rows, "", note]) + "\n"


def with_table(text: str, figures: Mapping[str, Any], names: Sequence[str]) -> str:
    """A document with its table of figures made anew."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{table(figures, names)}\n{END}", text)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "figures",
        measure,
        FiguresOptions,
        argv,
        purpose="Measures the documented figures (an hour) and writes the tables that show them.",
        example="--only env,harder\n      measures these two and keeps the others",
    )


if __name__ == "__main__":
    sys.exit(main())
