"""`benchmarks.profile`: time is counted for the function that it is spent in."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import profile

PROGRAM = """\
HloModule jit_run, is_scheduled=true

FileNames
1 "/x/hackmatrix/jaxgame/game.py"
2 "/x/hackmatrix/jaxgame/bitboard.py"
3 "/x/other/numpy.py"

FunctionNames
1 "step"
2 "nth"
3 "walk.<locals>.go"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=1}
2 {file_name_id=2 function_name_id=2 line=1 end_line=1 column=1 end_column=1}
3 {file_name_id=1 function_name_id=3 line=1 end_line=1 column=1 end_column=1}
4 {file_name_id=3 function_name_id=2 line=1 end_line=1 column=1 end_column=1}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=1}
4 {file_location_id=4 parent_frame_id=4}

%inner (p: s32[]) -> s32[] {
  %add.1 = s32[] add(%p, %p), metadata={op_name="a" stack_frame_id=4}
  %add.2 = s32[] add(%p, %p), metadata={op_name="a" stack_frame_id=3}
  ROOT %add.3 = s32[] add(%add.1, %add.2), metadata={op_name="a" stack_frame_id=2}
}

ENTRY %main (p: s32[]) -> s32[] {
  %tool.1 = s32[] negate(%p), metadata={op_name="b" stack_frame_id=2}
  %fused.1 = s32[] fusion(%p), kind=kLoop, calls=%inner, metadata={stack_frame_id=1}
  ROOT %while.1 = s32[] while(%fused.1), body=%x, metadata={op_name="b" stack_frame_id=1}
}
"""


def test_places_of_a_program() -> None:
    places = profile.places(PROGRAM)
    assert places["tool.1"] == "game.py step"  # who uses the tool
    assert places["add.1"] == "game.py walk.go"  # who calls another library
    assert places["fused.1"] == "game.py walk.go"  # where most of it comes from
    assert places["while.1"].startswith("XLA's own")


def test_seconds_of_places() -> None:
    def event(op: str, ts: float, dur: float, module: str = "jit_run") -> dict[str, Any]:
        args = {"hlo_op": op, "hlo_module": module}
        return {"pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}

    events = [
        event("tool.1", 2e6, 3e6),
        event("while.1", 0, 9e6),
        event("fused.1", 5e6, 1e6),
        event("fused.1", 9e6, 4e6),
        event("tool.1", 0, 50e6, module="jit_other"),
        {"ph": "M"},
    ]
    seconds = profile.seconds_by_place(events, "jit_run", profile.places(PROGRAM))
    own = next(place for place in seconds if place.startswith("XLA's own"))
    expected = {"game.py step": 3, "game.py walk.go": 5, own: 5}
    assert seconds == pytest.approx(expected)


@pytest.mark.slow
def test_profile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    argv = ["--num-envs", "16", "--num-steps", "8", "--output", str(tmp_path), "--json"]
    assert profile.main(argv) == 0
    figures = json.loads(capsys.readouterr().out)
    assert sum(figures["shares"].values()) == pytest.approx(1)
    assert any(place.startswith("enemy_turn.py ") for place in figures["shares"])
    assert list(tmp_path.rglob("*.trace.json.gz"))
