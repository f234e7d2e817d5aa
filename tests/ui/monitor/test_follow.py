"""A file is followed while another process writes it."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hackmatrix.ui.monitor import run
from hackmatrix.ui.monitor.run import Follower


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines"


def test_a_missing_file_has_no_news(path: Path) -> None:
    follower = Follower(path)
    assert follower.read() == (False, [], 0)
    path.write_bytes(b"a\n")
    assert follower.read() == (False, [b"a"], 0)


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=6)), st.data())
def test_pieces_of_a_file_give_its_lines(pieces: list[bytes], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines"
        follower, seen = Follower(path), []
        for piece in pieces:
            with path.open("ab") as file:
                file.write(piece.replace(b"\r", b""))
            if data.draw(st.booleans()):
                news = follower.read()
                assert not news.anew
                seen += news.lines
        seen += follower.read().lines
        whole = path.read_bytes() if path.exists() else b""
        assert seen == whole[: whole.rfind(b"\n") + 1].splitlines()


def replace(path: Path) -> None:
    partial = path.with_name("partial")
    partial.write_bytes(b"a\nb\nc\n")  # it begins as what was read
    partial.replace(path)


def cut(path: Path) -> None:
    os.truncate(path, 2)


def cut_and_grow(path: Path) -> None:
    cut(path)
    with path.open("ab") as file:
        file.write(b"c\nd\n")


@pytest.mark.parametrize(
    ("change", "lines"),
    [(replace, [b"a", b"b", b"c"]), (cut, [b"a"]), (cut_and_grow, [b"a", b"c", b"d"])],
)
def test_a_file_that_was_replaced_or_cut_off_is_read_anew(
    change: Callable[[Path], None], lines: list[bytes], path: Path
) -> None:
    path.write_bytes(b"a\nb\n")
    follower = Follower(path)
    follower.read()
    change(path)
    assert follower.read() == (True, lines, 0)


def test_a_long_file_is_read_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_BYTES", 10)
    path.write_bytes(b"1234\n" * 5)
    follower = Follower(path)
    assert follower.read() == (False, [b"1234"] * 2, 15)
    assert follower.read() == (False, [b"1234"] * 2, 5)
    assert follower.read() == (False, [b"1234"], 0)


def test_a_line_without_end_is_passed_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_BYTES", 10)
    monkeypatch.setattr(run, "LONGEST_LINE", 20)
    path.write_bytes(b"x" * 50 + b"\n" + b"y" * 19 + b"\nrow\n")
    follower = Follower(path)
    lines = [line for _ in range(5) for line in follower.read().lines]
    assert lines[-2:] == [b"y" * 19, b"row"]
