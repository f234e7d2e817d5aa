"""The recorded games of the tests, raw and read."""

import gzip
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from paths import DATA

from hackmatrix.game.conformance.check import StepVerdict, check_step
from hackmatrix.game.conformance.format import (
    RecordedGame,
    RecordedState,
    RecordedStep,
    read_game,
    rebuild_saved_states,
)

Raw = dict[str, Any]

RECORDINGS = DATA / "traces_dev.jsonl.gz"


@cache
def lines() -> list[bytes]:
    """One game a line."""
    return gzip.decompress(RECORDINGS.read_bytes()).splitlines()


@cache
def game(number: int) -> RecordedGame:
    """A game as conformance reads it."""
    read = read_game(lines()[number])
    rebuild_saved_states(read)
    return read


@cache
def raw_game(number: int) -> Raw:
    """A game as it is written."""
    raw: Raw = json.loads(lines()[number])
    return raw


class Spot(NamedTuple):
    """A recorded step and its place."""

    game: int
    number: int
    before: RecordedState
    step: RecordedStep


def spots() -> Iterator[Spot]:
    """All recorded steps."""
    for number in range(len(lines())):
        before = game(number).initial
        for i, step in enumerate(game(number).steps):
            yield Spot(number, i, before, step)
            before = step.after


def check_altered(number: int, i: int, altered: Raw) -> StepVerdict:
    """The verdict on one step of a game, written otherwise than it was recorded."""
    whole = game(number)
    line = json.dumps({"initial": raw_game(number)["initial"], "steps": [altered]})
    step = read_game(line.encode()).steps[0]
    rebuild_saved_states(RecordedGame(whole.initial, [*whole.steps[:i], step]))
    return check_step(whole.steps[i - 1].after if i else whole.initial, step)
