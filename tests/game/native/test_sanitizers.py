"""The engine under the address and undefined-behaviour sanitizers."""

import re
import time
from pathlib import Path

import native_fuzz
import pytest

SECONDS = 300


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_fuzzed_play_has_no_undefined_behaviour(tmp_path: Path) -> None:
    if why := native_fuzz.missing(tmp_path):
        pytest.skip(why)
    program = native_fuzz.build(tmp_path)
    done = native_fuzz.fuzz(program, SECONDS, seed=time.time_ns() % 2**32)
    assert done.returncode == 0, done.stderr
    steps, wins, accepted, refused, _ = map(int, re.findall(r"\d+", done.stdout))
    assert min(steps, accepted, refused) > 100_000
    assert wins > 10
