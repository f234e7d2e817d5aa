"""Many tabs at once: what they leave in the server's memory."""

import asyncio
import json
import resource
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.typing import Origin

TABS = 50
MOVES = 12_000  # a minute of all tabs, on a machine that does nothing else
PAUSE = 0.25  # seconds between the moves of a tab


@contextmanager
def served(*arguments: str) -> Iterator[tuple[str, int]]:
    """`hackmatrix ARGUMENTS`: its address and process id."""
    command = [sys.executable, "-m", "hackmatrix", *arguments, "--port", "0", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[0], process.pid
        process.send_signal(signal.SIGINT)


@pytest.mark.slow
def test_a_minute_of_fifty_tabs_leaves_memory_flat() -> None:
    with served("watch", "random") as (address, process):
        megabytes = asyncio.run(watched(address, process))
    quarter = MOVES // 4
    early, later = megabytes[quarter : 2 * quarter], megabytes[2 * quarter :]
    assert statistics.mean(later) - statistics.mean(early) < 2


async def watched(address: str, process: int) -> list[float]:
    """Megabytes of the process after each move, while many tabs watch games."""
    megabytes = list[float]()
    place, origin = address.replace("http", "ws") + "session", Origin(address.rstrip("/"))

    async def tab() -> None:
        while len(megabytes) < MOVES:
            async with connect(place, origin=origin) as link:  # a game each
                over = False
                while not over and len(megabytes) < MOVES:
                    await link.send('{"do": "agent"}')
                    over = json.loads(await link.recv())["seen"]["over"] is not None
                    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
                    megabytes.append(pages * resource.getpagesize() / 1e6)
                    await asyncio.sleep(PAUSE)

    await asyncio.gather(*(tab() for _ in range(TABS)))
    return megabytes
