"""Many tabs at once: what they leave in the server's memory."""

import asyncio
import json
import resource
import statistics
import time
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.typing import Origin

from benchmarks.page import served

TABS = 50
SECONDS = 60
PAUSE = 0.25  # seconds between the moves of a tab


@pytest.mark.slow
def test_a_minute_of_fifty_tabs_leaves_memory_flat() -> None:
    with served("watch", "random") as (address, process):
        megabytes, moves = asyncio.run(watch_games(address, process))
    assert moves > SECONDS
    quarter = len(megabytes) // 4
    early, later = megabytes[quarter : 2 * quarter], megabytes[2 * quarter :]
    assert statistics.mean(later) - statistics.mean(early) < 2


async def watch_games(address: str, process: int) -> tuple[list[float], int]:
    """Megabytes of the process while many tabs watch games, and how many moves were made."""
    moves, megabytes, end = 0, list[float](), time.perf_counter() + SECONDS
    place, origin = address.replace("http", "ws") + "session", Origin(address.rstrip("/"))

    async def tab() -> None:
        nonlocal moves
        while time.perf_counter() < end:
            async with connect(place, origin=origin) as link:  # a game each
                over = False
                while not over and time.perf_counter() < end:
                    await link.send('{"do": "agent"}')
                    over = json.loads(await link.recv())["seen"]["over"] is not None
                    moves += 1
                    await asyncio.sleep(PAUSE)

    async def memory() -> None:
        while time.perf_counter() < end:
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
            megabytes.append(pages * resource.getpagesize() / 1e6)
            await asyncio.sleep(PAUSE)

    await asyncio.gather(memory(), *(tab() for _ in range(TABS)))
    return megabytes, moves
