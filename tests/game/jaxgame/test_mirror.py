"""The two engines mirror each other: same files, same public names in each.

Whoever knows a rule in one engine finds it under the same name in the other. The tables are the
exceptions, each with its reason; one that is no longer needed fails too.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mirrored import PACKAGE, check_names, public_names

# For people; the JAX training reward belongs to the environment, which learners see.
ENGINE_FILES = {"events", "fields", "replay", "saving", "training_reward", "text"}
# For arrays: sets as bits, numbers as bit planes, many games at once, a step as a TPU's kernel.
JAX_FILES = {"batch", "bitboard", "control_flow", "conversion", "feature_rows"}
JAX_FILES |= {"kernel", "mosaic", "planes", "records"}
NAMES = {  # those of the engine alone, and of `jaxgame` alone
    # There an action is checked by a bit of the mask.
    "actions": ("is_valid", ""),
    # An action strikes all pieces at once.
    "combat": ("", "Blow"),
    # `batch.py` lets enemies act one a game at a time, between the parts of a turn.
    "enemy_turn": (
        "enemy_turn move_enemies",
        "begin_turn begin_movement finish_turn Ground Movement",
    ),
    # `batch.py` puts the movement between the parts; `env.py` is the face for users.
    "game": ("Game GameOverError step", "begin_step finish_step ActionTaken"),
    # A search goes on from call to call, a few rounds in each.
    "movement": ("distances", "flood Surroundings Answer"),
    # The record is made plane by plane, not cell by cell.
    "observation": ("observe observe_saved", "features record_words scale"),
    # `batch.py` tries many layouts side by side, after the corners have been drawn.
    "stage": ("place_corners choose_layout", "plan_stage BoardPlan"),
    # A fact of all pieces is one field, its numbers are bit planes.
    "state": (
        "Cell Enemy Transmission",
        "Cells Enemies Transmissions NUM_PLANES zeros SavedPositions",
    ),
    # Another is in `visible_state.py`; these sets have an axis of what is played side by side.
    "board": (
        "FeatureGroups hits",
        "VisibleState ground materialize stack each_of both meet only_if column bits sum_weights",
    ),
    # Four integers in a word, as the kernel of a TPU wants them.
    "layout": ("", "tactical_words"),
    # All strikes are played out at once, whatever is affordable.
    "strikes": ("of_programs", "Board board_of surviving after_strikes hitters"),
    # Programs need the directions after them.
    "threats": ("of_directions of_window", "of_actions"),
    # Saved positions are rows of words beside the game; arrays need no copies.
    "undo": (
        "copy_state",
        "position_from none_saved without_rows with_rows saved_from positions_of",
    ),
}


def files(folder: str) -> set[str]:
    return {path.stem for path in (PACKAGE / folder).glob("*.py")} - {"__init__"}


def test_the_engines_have_the_same_files() -> None:
    assert files("game/engine") - files("game/jaxgame") == ENGINE_FILES
    assert files("game/jaxgame") - files("game/engine") == JAX_FILES


def pairs() -> Iterator[tuple[Path, Path]]:
    """The files that mirror each other, of the rules and of what a player can foresee."""
    for name in sorted(files("game/engine") & files("game/jaxgame")):
        yield PACKAGE / f"game/engine/{name}.py", PACKAGE / f"game/jaxgame/{name}.py"
    for path in sorted((PACKAGE / "game/foresight").glob("python_*.py")):
        yield path, path.with_name(path.name.replace("python_", "jax_"))


@pytest.mark.parametrize(("ours", "theirs"), [*pairs()], ids=lambda path: path.stem)
def test_the_same_file_has_the_same_public_names(ours: Path, theirs: Path) -> None:
    check_names(ours.stem.removeprefix("python_"), public_names(ours), public_names(theirs), NAMES)
