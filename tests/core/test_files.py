"""A folder with a manifest: every change of its files is found and named."""

from pathlib import Path

import pytest

from hackmatrix.core.files import DamagedError, check_manifest, write_manifest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "one.json").write_text('{"a": 1}')
    (tmp_path / "deep" / "er" / "two.bin").write_bytes(bytes(range(16)))
    (tmp_path / "empty").touch()
    write_manifest(tmp_path)
    return tmp_path


def damage_of(folder: Path) -> str:
    with pytest.raises(DamagedError) as raised:
        check_manifest(folder)
    assert str(raised.value).startswith(f"{folder} is damaged: ")
    return str(raised.value)


def test_a_flipped_bit_is_found_wherever_it_is(folder: Path) -> None:
    for name in ("one.json", "deep/er/two.bin", "manifest.json"):
        path = folder / name
        content = path.read_bytes()
        for place in range(len(content)):
            for bit in (0, 5):  # the fifth changes the case of a letter
                changed = bytearray(content)
                changed[place] ^= 1 << bit
                path.write_bytes(changed)
                assert damage_of(folder)
        path.write_bytes(content)
    check_manifest(folder)


def test_a_cut_file_is_named(folder: Path) -> None:
    path = folder / "deep" / "er" / "two.bin"
    path.write_bytes(path.read_bytes()[:-1])
    assert "the file deep/er/two.bin has 15 bytes, not 16" in damage_of(folder)


@pytest.mark.parametrize("name", ["empty", "manifest.json"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert f"the file {name} is missing" in damage_of(folder)


def test_a_file_that_does_not_belong_there_is_named(folder: Path) -> None:
    (folder / "deep" / "three").touch()
    assert "the file deep/three does not belong there" in damage_of(folder)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"one.json": 3}', '{"one.json": [1]}', "null"])
def test_a_manifest_of_another_form_is_no_manifest(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    assert "the file manifest.json was changed" in damage_of(folder)
