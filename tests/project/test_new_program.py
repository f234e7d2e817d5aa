"""A new program of the game takes changes of exactly the files that CONTRIBUTING.md names."""

from pathlib import Path

import pytest
from patched_package import files_of_recipe, patched_package, run_patched
from paths import HELPERS

EDITS = {
    "game/rules/programs.py": [
        (")\n\n\nclass ProgramId", '    Program("PATCH", 1, 0, 1),\n'),
        ("\n\nPROGRAM_INDEX = {", "    PATCH = 23\n"),
    ],
    "game/engine/programs.py": [
        (
            "        case ProgramId.ATK_PLUS:",
            "        case ProgramId.PATCH:\n            player.hp += 1\n",
        ),
        (
            "    ProgramId.HACK: lambda state: any(",
            "    ProgramId.PATCH: lambda state: state.player.hp < PLAYER_HP,\n",
        ),
    ],
    "game/jaxgame/programs.py": [
        (
            "        ProgramId.HACK: cells.siphoned",
            "        ProgramId.PATCH: player.hp < PLAYER_HP,\n",
        ),
        (",\n            energy=saturate(player.energy", " + (program == ProgramId.PATCH)"),
    ],
    "game/drawing/shapes.py": [("}\n\nSHAPES =", '    "PATCH": _filled(_CROSS),\n')],
    "ui/session/descriptions.py": [
        ("}\n\n# Keys", '    "PATCH": ("Restores 1 hp.", "your hp is full"),\n'),
    ],
}


PLAY = HELPERS / "patched_game.py"


@pytest.fixture
def patched(tmp_path: Path) -> Path:
    """A folder with a copy of the package in which there is one more program."""
    return patched_package(tmp_path, EDITS)


def test_the_files_are_those_that_the_table_names() -> None:
    assert files_of_recipe("a program of the game") == set(EDITS)


def test_it_is_played_shown_and_observed(patched: Path) -> None:
    run_patched(patched, PLAY)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_both_engines_play_it_alike(patched: Path) -> None:
    run_patched(patched, PLAY, "jax")
