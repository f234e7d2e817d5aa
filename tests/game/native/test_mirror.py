"""The native engine mirrors the Python engine: the same files, and the same names in each.

The tables are the exceptions, each with its reason; one that is no longer needed fails too.
"""

import re

import pytest
from mirrored import PACKAGE, check_names, public_names

ENGINE = PACKAGE / "game/engine"
NATIVE = PACKAGE / "game/native"

ENGINE_FILES = {"events", "fields", "replay", "saving", "text"}  # for people
# Many games at once and what comes from outside; the rules, foresight and players of other wings.
NATIVE_FILES = {"batch", "calls", "env_step", "jax_state", "legality", "row_calls", "xla"}
NATIVE_FILES |= {"board", "features", "imagination", "record", "rows", "scripted", "tactical"}
NATIVE_FILES |= {"cuda_std", "platform"}  # for the compilers of GPUs
NAMES = {  # those of the engine alone, and of the native one alone
    # A tuple; all directions at once.
    "actions": ("", "Effect ways"),
    # Pieces are removed from their list all at once.
    "combat": ("destroy", "remove_dead destroy_transmission destroy_all_on"),
    # Private in the engine.
    "dice": ("", "Words mix scrambled folded"),
    "siphoning": ("", "take Yield yield_at"),
    # Faces for users are in Python.
    "game": ("Game GameOverError Outcome", ""),
    # A search goes on as far as its caller needs.
    "movement": ("distances exit_distances", "Search first_step from_exit"),
    # The record is made plane by plane; features are made by whoever reads it.
    "observation": (
        "observe_saved player_features owned_features cell_features extra_cell_features "
        "extra_features",
        "Distances observe_cells observe_pieces",
    ),
    # Two lines of `run`.
    "programs": ("pay", "any_spawn_left sign"),
    # A comprehension in the engine.
    "reward": ("", "is_siphon_killed"),
    # A list in the engine.
    "stage": ("", "Layout"),
    # Cells as sets, lists of fixed size.
    "state": ("Cell empty_board", "Cells List"),
    # They lie apart from the state, which is plain memory.
    "undo": ("copy_state", "SavedPositions next_saved"),
}


def native_names(name: str) -> set[str]:
    """The functions and structs that a header defines."""
    text = (NATIVE / f"{name}.hpp").read_text()
    functions = re.findall(
        r"^(?:inline|constexpr|SEPARATE) (?!constexpr)[\w&*<> ]+?[ *&](\w+)\(", text, re.M
    )
    return {*functions, *re.findall(r"^(?:struct|enum) (\w+)", text, re.M)}


def stems(pattern: str) -> set[str]:
    return {path.stem for path in PACKAGE.glob(pattern)} - {"__init__"}


def test_the_engines_have_the_same_files() -> None:
    engine, native = stems("game/engine/*.py"), stems("game/native/*.hpp")
    assert engine - native == ENGINE_FILES
    assert native - engine == NATIVE_FILES


MIRRORED = sorted(stems("game/engine/*.py") & stems("game/native/*.hpp"))


@pytest.mark.parametrize("name", MIRRORED)
def test_the_same_file_has_the_same_names(name: str) -> None:
    check_names(name, public_names(ENGINE / f"{name}.py"), native_names(name), NAMES)
