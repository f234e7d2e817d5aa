"""Many tabs at once: what they leave in the server's memory."""

import asyncio
import json
import resource
import statistics
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.typing import Origin

from benchmarks.page import served

TABS = 50
MOVES = 12_000  # a minute of all tabs, on a machine that does nothing else
PAUSE = 0.25  # seconds between the moves of a tab


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
