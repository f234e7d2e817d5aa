"""Memory of the page's server while many tabs watch games."""

import asyncio
import json
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import run_command
from benchmarks.page import Figure, PageBench, served
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options

_PAUSE = 0.25  # seconds between the moves of a tab


@dataclass(frozen=True)
class TabsOptions(Options):
    """The options of the command."""

    tabs: int = option(50, "connections at once", at_least=1, at_most=64)
    seconds: float = option(60.0, "for which they watch", at_least=1)


def measure(options: TabsOptions) -> PageBench:
    """Measures it."""
    return PageBench(many_tabs(options.tabs, options.seconds))


def many_tabs(count: int, seconds: float) -> dict[str, Figure]:
    """Lets many tabs watch games of the random agent, each game in a new connection."""
    with served("watch", "random") as (address, process):
        rows, moves = asyncio.run(_watch_all(address, process, count, seconds))
    quarter = len(rows) // 4
    growth = statistics.mean(rows[2 * quarter :]) - statistics.mean(rows[quarter : 2 * quarter])
    return {
        "moves": Figure([moves / seconds], f"a second of all {count}"),
        "memory of the server": Figure([max(rows)], "MB at most"),
        "growth of memory": Figure([growth], "MB after the first quarter of the time"),
    }


async def _watch_all(
    address: str, process: int, count: int, seconds: float
) -> tuple[list[float], int]:
    """Resident megabytes of the process, each half second, and how many moves were made."""
    from websockets.asyncio.client import connect
    from websockets.typing import Origin

    made, rows, end = 0, list[float](), time.perf_counter() + seconds
    place = address.replace("http", "ws") + "session"

    async def watch_games() -> None:
        nonlocal made
        while time.perf_counter() < end:
            async with connect(place, origin=Origin(address.rstrip("/"))) as link:
                over = False
                while not over and time.perf_counter() < end:
                    await link.send('{"do": "agent"}')
                    over = json.loads(await link.recv())["seen"]["over"] is not None
                    made += 1
                    await asyncio.sleep(_PAUSE)

    async def watch_memory() -> None:
        while time.perf_counter() < end:
            rows.append(resident(process))
            await asyncio.sleep(_PAUSE)

    await asyncio.gather(watch_memory(), *(watch_games() for _ in range(count)))
    return rows, made


def resident(process: int) -> float:
    """Megabytes of memory that a process has."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "tabs",
        measure,
        TabsOptions,
        argv,
        purpose="Measures the memory of the page's server while many tabs watch games.",
        example="--tabs 10 --seconds 20\n      less of it",
    )


if __name__ == "__main__":
    sys.exit(main())
