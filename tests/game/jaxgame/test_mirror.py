"""The two engines mirror each other: same files, same public names in each, same fields.

Whoever knows a rule in one engine finds it under the same name in the other. The tables are the
exceptions, each with its reason; one that is no longer needed fails too.
"""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mirrored import PACKAGE, public_names

from hackmatrix.game.engine import reward as engine_reward
from hackmatrix.game.engine import state as engine
from hackmatrix.game.jaxgame import reward as jax_reward
from hackmatrix.game.jaxgame import state as jaxgame

ENGINE_FILES = {  # for people
    "events.py": "what happened, for whoever draws it",
    "fields.py": "reading JSON",
    "replay.py": "which game it is, and what was done in it",
    "saving.py": "writing and reading JSON",
    "training_reward.py": "the JAX one belongs to the environment, which learners see",
    "text.py": "positions as a person writes them",
}
JAX_FILES = {  # for arrays
    "batch.py": "many games at once",
    "bitboard.py": "sets as bits",
    "control_flow.py": "loops and branches of a batch",
    "conversion.py": "from and to states of the engine",
    "feature_rows.py": "features as rows of a table",
    "kernel.py": "a step as one kernel of a TPU",
    "mosaic.py": "what such a kernel is made with",
    "planes.py": "numbers as bit planes",
    "records.py": "observations read as sets",
}


class Differences(NamedTuple):
    """Names that only one of the two files has, and why."""

    engine: str
    jaxgame: str
    why: str


NAMES = {
    "actions.py": Differences("is_valid", "", "there an action is checked by a bit of the mask"),
    "combat.py": Differences("", "Blow", "an action strikes all pieces at once"),
    "enemy_turn.py": Differences(
        "enemy_turn move_enemies",
        "begin_turn begin_movement finish_turn Ground Movement",
        "batch.py lets enemies act one a game at a time, between the parts of a turn",
    ),
    "game.py": Differences(
        "Game GameOverError step",
        "begin_step finish_step ActionTaken",
        "batch.py puts the movement between the parts; env.py is the face for users",
    ),
    "movement.py": Differences(
        "distances",
        "flood Surroundings Answer",
        "a search goes on from call to call, a few rounds in each",
    ),
    "observation.py": Differences(
        "observe observe_saved",
        "features record_words scale",
        "the record is made plane by plane, not cell by cell",
    ),
    "stage.py": Differences(
        "place_corners choose_layout",
        "plan_stage BoardPlan",
        "batch.py tries many layouts side by side, after the corners have been drawn",
    ),
    "state.py": Differences(
        "Cell Enemy Transmission",
        "Cells Enemies Transmissions NUM_PLANES zeros SavedPositions",
        "a fact of all pieces is one field, its numbers are bit planes",
    ),
    "board.py": Differences(
        "FeatureGroups hits",
        "VisibleState ground materialize stack each_of both meet only_if column bits sum_weights",
        "another is in `visible_state.py`; these sets have an axis of what is played side by side",
    ),
    "layout.py": Differences(
        "", "tactical_words", "four integers in a word, as the kernel of a TPU wants them"
    ),
    "strikes.py": Differences(
        "of_programs",
        "Board board_of surviving after_strikes hitters",
        "all strikes are played out at once, whatever is affordable",
    ),
    "threats.py": Differences(
        "of_directions of_window", "of_actions", "programs need the directions after them"
    ),
    "undo.py": Differences(
        "copy_state",
        "position_from none_saved without_rows with_rows saved_from positions_of",
        "saved positions are rows of words beside the game; arrays need no copies",
    ),
}

# Fields that only one of the two classes has.
FIELDS: list[tuple[Any, Any, str, str, str]] = [
    (engine.Player, jaxgame.Player, "", "", ""),
    (engine.Enemy, jaxgame.Enemies, "", "count", "the length of the list"),
    (engine.Transmission, jaxgame.Transmissions, "", "count", "the length of the list"),
    (
        engine.Cell,
        jaxgame.Cells,
        "content points program holds_data",
        "blocks questions siphons data value",
        "content as sets; a block has points or a program, never both",
    ),
    (engine.Position, jaxgame.Position, "", "acquired", "`owned` is a set, this its order"),
    (
        engine.State,
        jaxgame.State,
        "events",
        "acquired enemies_at transmissions_at",
        "nobody draws a batch; sets of cells are kept beside the lists",
    ),
    (engine_reward.Before, jax_reward.Before, "", "", ""),
]


def files(folder: str) -> set[str]:
    return {path.name for path in (PACKAGE / folder).glob("*.py")}


def test_the_engines_have_the_same_files() -> None:
    assert files("game/engine") - files("game/jaxgame") == set(ENGINE_FILES)
    assert files("game/jaxgame") - files("game/engine") == set(JAX_FILES)


def pairs() -> Iterator[tuple[Path, Path]]:
    """The files that mirror each other, of the rules and of what a player can foresee."""
    for name in sorted(files("game/engine") & files("game/jaxgame") - {"__init__.py"}):
        yield PACKAGE / "game/engine" / name, PACKAGE / "game/jaxgame" / name
    for path in sorted((PACKAGE / "game/foresight").glob("python_*.py")):
        yield path, path.with_name(path.name.replace("python_", "jax_"))


@pytest.mark.parametrize(("ours", "theirs"), [*pairs()], ids=lambda path: path.name)
def test_the_same_file_has_the_same_public_names(ours: Path, theirs: Path) -> None:
    names = public_names(ours), public_names(theirs)
    differences = NAMES.get(ours.name.removeprefix("python_"), Differences("", "", ""))
    assert names[0] - names[1] == set(differences.engine.split())
    assert names[1] - names[0] == set(differences.jaxgame.split())


@pytest.mark.parametrize(
    ("ours", "theirs", "only_ours", "only_theirs", "why"), FIELDS, ids=lambda x: str(x)[:60]
)
def test_the_same_class_has_the_same_fields(
    ours: Any, theirs: Any, only_ours: str, only_theirs: str, why: str
) -> None:
    def names(kind: Any) -> list[str]:
        return list(getattr(kind, "_fields", None) or [f.name for f in fields(kind)])

    assert set(names(ours)) - set(names(theirs)) == set(only_ours.split()), why
    assert set(names(theirs)) - set(names(ours)) == set(only_theirs.split()), why
