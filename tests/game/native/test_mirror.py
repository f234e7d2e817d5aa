"""The native engine mirrors the Python engine: the same files, and the same names in each.

The tables are the exceptions, each with its reason; one that is no longer needed fails too.
"""

import re
from typing import NamedTuple

import pytest
from mirrored import PACKAGE, public_names

ENGINE = PACKAGE / "game/engine"
NATIVE = PACKAGE / "game/native"

ENGINE_FILES = {  # for people
    "events": "what happened, for whoever draws it",
    "fields": "reading JSON",
    "replay": "which game it is, and what was done in it",
    "saving": "writing and reading JSON",
    "text": "positions as a person writes them",
}
NATIVE_FILES = {
    "batch": "many games at once, shared by threads",
    "board": "of `rules/`: the geometry, and sets of cells as bits",
    "calls": "the custom calls for XLA, on CPUs and on GPUs",
    "cuda_std": "names of the standard library, for GPUs",
    "env_step": "a step as the environment takes it",
    "features": "of `foresight/`: the layouts `classic` and `full`",
    "imagination": "of `foresight/`: games as the player can imagine them",
    "jax_state": "to and from the words of the JAX engine",
    "legality": "of the engine's `saving.py`: what comes as bytes or words",
    "platform": "what compilers for GPUs are told besides",
    "record": "reads what `observation.hpp` makes",
    "row_calls": "the custom calls for XLA that sum `rows`",
    "rows": "of `agents/networks/`: what the network `player_centred` sums",
    "scripted": "of `agents/scripted/`: the scripted player, a hundred times as fast",
    "tactical": "of `foresight/`: the layout `tactical`",
    "xla": "the handlers that `xla.cpp` gives to the module",
}


class Differences(NamedTuple):
    """Names that only one of the two files has, and why."""

    engine: str
    native: str
    why: str


NAMES = {
    "actions": Differences("", "Effect ways", "a tuple; all directions at once"),
    "combat": Differences(
        "destroy",
        "remove_dead destroy_transmission destroy_all_on",
        "pieces are removed from their list all at once",
    ),
    "dice": Differences("", "Words mix scrambled folded", "private in the engine"),
    "game": Differences("Game GameOverError Outcome", "", "faces for users are in Python"),
    "movement": Differences(
        "distances exit_distances",
        "Search first_step from_exit",
        "a search goes on as far as its caller needs",
    ),
    "observation": Differences(
        "observe_saved player_features owned_features cell_features extra_cell_features "
        "extra_features",
        "Distances observe_cells observe_pieces",
        "the record is made plane by plane; features are made by whoever reads it",
    ),
    "programs": Differences("pay", "any_spawn_left sign", "two lines of `run`"),
    "reward": Differences("", "is_siphon_killed", "a comprehension in the engine"),
    "siphoning": Differences("", "take Yield yield_at", "private in the engine"),
    "stage": Differences("", "Layout", "a list in the engine"),
    "state": Differences("Cell empty_board", "Cells List", "cells as sets, lists of fixed size"),
    "undo": Differences(
        "copy_state",
        "SavedPositions next_saved",
        "they lie apart from the state, which is plain memory",
    ),
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
    assert engine - native == set(ENGINE_FILES)
    assert native - engine == set(NATIVE_FILES)


MIRRORED = sorted(stems("game/engine/*.py") & stems("game/native/*.hpp"))


@pytest.mark.parametrize("name", MIRRORED)
def test_the_same_file_has_the_same_names(name: str) -> None:
    engine, native = public_names(ENGINE / f"{name}.py"), native_names(name)
    differences = NAMES.get(name, Differences("", "", ""))
    assert engine - native == set(differences.engine.split())
    assert native - engine == set(differences.native.split())
