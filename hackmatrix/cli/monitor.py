"""`hackmatrix monitor`: the metrics of runs, live, in this terminal or as a page."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hackmatrix.cli.arguments import parse
from hackmatrix.cli.buckets import local_runs
from hackmatrix.cli.play import MAX_PORT, ServedOptions, serve_page
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from hackmatrix.ui.monitor.runs import Runs


_BUCKET_SECONDS = 15.0  # between two looks at a bucket, where rows come every half minute


@dataclass(frozen=True)
class MonitorOptions(ServedOptions):
    """The command's options."""

    runs: tuple[str, ...] = option(
        (),
        "folders of runs, or names in --log-dir; local or gs://...; default the newest run in "
        "--log-dir",
        positional=True,
    )
    port: int = option(8643, "port of the page, 0 for any free one", at_least=0, at_most=MAX_PORT)
    log_dir: Path = option(Path("checkpoints"), "folder of runs")
    refresh_interval: float = option(
        5.0, "seconds between reads of the files", at_least=0.2, at_most=3600
    )
    page: bool = option(False, "show a page with plots in a browser")
    once: bool = option(False, "print the table once and exit")
    json: bool = option(False, "print the last values of all runs as one JSON object and exit")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.page and (self.once or self.json):
            raise UserError("give only one of --page and --once, or --json")


def main(argv: list[str]) -> int:
    """Shows the runs until Ctrl+C, or once."""
    options = parse(
        MonitorOptions,
        argv,
        command="hackmatrix monitor",
        purpose="Shows the metrics, alarms and checkpoints of runs, live or finished.",
        example="  hackmatrix monitor checkpoints/my-run --page\n"
        "      opens a page with plots that follow the run",
    )
    from hackmatrix.ui.monitor.runs import Runs

    ends = options.once or options.json
    again = None if ends else max(options.refresh_interval, _BUCKET_SECONDS)
    words = [local_runs(word, again) for word in options.runs]
    log_dir = options.log_dir if words else local_runs(options.log_dir, again)
    runs = Runs(words, log_dir)
    if options.page:
        return _serve(runs, options)
    if options.json:
        from hackmatrix.ui.monitor.answers import last_values

        runs.read_all()
        print(json.dumps(last_values(runs), allow_nan=False))
        return 0
    from hackmatrix.ui.monitor.terminal import follow, show_once

    if options.once or not sys.stdout.isatty():
        show_once(runs)
    else:
        follow(runs, options.refresh_interval)
    return 0


def _serve(runs: "Runs", options: MonitorOptions) -> int:
    def make(token: str | None, host: str) -> "Starlette":
        from hackmatrix.ui.monitor.server import keep_reading, make_app

        keep_reading(runs, options.refresh_interval)
        return make_app(runs, options.refresh_interval, token=token, host=host)

    return serve_page(options, make)
