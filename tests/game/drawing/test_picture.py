"""A picture shows what the player sees, all of it and nothing else."""

import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from look_alikes import other_secrets
from paths import DOCS
from strategies import Data, legal_states

import hackmatrix.game.drawing
from hackmatrix.environments.hackmatrix.env import EnvState
from hackmatrix.game.drawing.marks import Mark, SvgGroup, Text
from hackmatrix.game.drawing.picture import draw, scene
from hackmatrix.game.drawing.svg import svg
from hackmatrix.game.drawing.visible_state import view
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.state import State
from hackmatrix.game.jaxgame.conversion import state_from_engine
from hackmatrix.game.rules.board import SIZE, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAM_INDEX, PROGRAMS

CROWDED = """
s. .. .v .. .d X.
.. Dv ?. .. .. ..
.d .. D. .v .. .+
.. P. .. .g P. .+
.. P. .v .. .. Dg
.@ .. .. .c .+ s.
stage 6 interval 7 next_task 17 turn 14 pending 2
flags step
player hp 2 credits 14 energy 3 siphons 1 attack 2 score 37
owned PUSH WAIT HACK CRASH SHOW STEP UNDO
cell 0,0 siphoned center
cell 0,1 siphoned
cell 0,2 energy 2
cell 0,5 credits 1
cell 1,0 siphoned
cell 1,1 program SIPH+ spawn 7
cell 1,5 points 3 siphoned
cell 2,1 program ANTI-V siphoned
cell 2,4 program D_BOM spawn 4
cell 3,2 points 4 spawn 4
cell 4,1 points 7 spawn 7
cell 4,2 points 9 spawn 9
cell 4,3 credits 3
enemy virus 5,2
enemy daemon 5,4 hp 2
enemy virus 4,1 hp 1
enemy daemon 3,0 hp 3
enemy virus 3,3 stunned
enemy glitch 2,3 hp 1 stunned from_siphon
enemy virus 1,2 disabled 1 from_siphon
enemy glitch 1,5
enemy cryptog 0,3 last 0,2
transmission virus 0,4
transmission daemon 2,5 turns 4
transmission glitch 3,5 turns 2
"""

SVG = "{http://www.w3.org/2000/svg}"


def in_group(group: SvgGroup) -> Iterator[Mark | Text]:
    for mark in group.marks:
        if isinstance(mark, SvgGroup):
            yield from in_group(mark)
        else:
            yield mark


def cells_of(game: Game, *, reveal: bool = False) -> list[SvgGroup]:
    """The groups of the cells, in the order of their flat indices."""
    groups = [g for g in scene(view(game.state, reveal=reveal)) if re.match(r"\d,\d", g.title)]
    return sorted(groups, key=lambda group: group.title[:3])


def shapes_on(game: Game, row: int, col: int, *, reveal: bool = False) -> Counter[str]:
    marks = in_group(cells_of(game, reveal=reveal)[row * SIZE + col])
    return Counter(mark.shape for mark in marks if isinstance(mark, Mark))


def texts_on(game: Game, row: int, col: int, *, reveal: bool = False) -> list[str]:
    marks = in_group(cells_of(game, reveal=reveal)[row * SIZE + col])
    return [mark.text for mark in marks if isinstance(mark, Text)]


def texts_of(game: Game) -> list[str]:
    """All texts of the picture."""
    marks = [mark for group in scene(view(game.state)) for mark in in_group(group)]
    return [mark.text for mark in marks if isinstance(mark, Text)]


# --- every fact has its mark -------------------------------------------------------------------


def test_every_cell_of_a_crowded_board_shows_what_is_there() -> None:
    game = Game.from_text(CROWDED)
    assert shapes_on(game, 0, 0) == Counter(
        {"plate": 1, "frame": 2, "center": 1, "hp": 3, "player": 1}
    )
    assert shapes_on(game, 5, 4) == Counter({"plate": 1, "hp": 3, "daemon": 1})
    assert shapes_on(game, 0, 4) == Counter({"plate": 1, "transmission": 1})
    assert texts_on(game, 2, 5) == ["4"]
    assert texts_on(game, 3, 2) == ["4", "4"]
    assert texts_on(game, 1, 1) == ["SIPH+", "7"]
    assert texts_on(game, 4, 2) == ["?"]
    assert texts_on(game, 4, 1) == ["7", "7"]


def test_hp_is_bars_in_the_colour_of_the_piece() -> None:
    marks = list(in_group(cells_of(Game.from_text(CROWDED))[5 * SIZE + 4]))
    bars = [mark.colour for mark in marks if isinstance(mark, Mark) and mark.shape == "hp"]
    assert bars == ["daemon", "daemon", "faint"]


def test_the_panel_shows_the_numbers_and_the_programs() -> None:
    game = Game.from_text(CROWDED)
    texts = texts_of(game)
    for number in ("6/8", "14", "3", "+2", "37", *PROGRAM_INDEX):
        assert number in texts
    titles = [group.title for group in scene(view(game.state))]
    for words in ("stage 6 of 8", "turn 14", "score 37", "hp 2 of 3", "credits 14", "energy 3"):
        assert words in titles
    assert "next scheduled spawn in 3 turns, 2 owed to siphoning" in titles
    assert {"siphons 1", "attack 2", "PUSH: owned", "STEP: owned, active", "PULL"} <= set(titles)


def test_the_line_of_fire_lights_free_cells_up() -> None:
    cells = cells_of(Game.from_text(CROWDED))
    lit = {i for i, g in enumerate(cells) for m in g.marks if m[0] == "plate" and m[-1] == "fire"}
    assert lit == {1, 2, 3, 6, 12, 18}


@pytest.mark.parametrize("over", ["won", "died", "invalid_action"])
def test_the_end_of_a_game_is_shown(over: str) -> None:
    game = Game.from_text(CROWDED + f"over {over}\n")
    texts = texts_of(game)
    assert over.split("_")[0].upper() in texts
    assert "SPAWN IN" not in texts


def test_row_5_is_on_top() -> None:
    cells = cells_of(Game.new(1))
    assert cells[0].y - cells[30].y == 500
    assert cells[5].x - cells[0].x == 500


@pytest.mark.thorough
@settings(max_examples=30)
@given(legal_states(ended=True))
def test_every_piece_of_any_state_is_drawn(data: Data) -> None:
    state = Game.from_dict(data).state
    cells = cells_of(Game(state))
    for i, group in enumerate(cells):
        drawn = Counter(mark.shape for mark in in_group(group) if isinstance(mark, Mark))
        seen = [enemy for enemy in state.enemies_on(i) if state.sees(enemy)]
        coming = state.transmission_on(i)
        kinds = Counter(enemy.type.name.lower() for enemy in seen)
        if coming and state.show:
            kinds[coming.type.name.lower()] += 1
        assert {kind: drawn[kind] for kind in kinds} == dict(kinds)
        assert sum(drawn[kind.name.lower()] for kind in EnemyType) == kinds.total()
        assert drawn["stunned"] == sum(enemy.stunned for enemy in seen)
        assert drawn["disabled"] == sum(enemy.disabled > 0 for enemy in seen)
        assert drawn["from_siphon"] == sum(enemy.from_siphon for enemy in seen)
        assert drawn["player"] == (state.player.cell == i)
        assert drawn["exit"] == (state.exit == i)
        assert drawn["siphon"] == (state.cells[i].content == Content.SIPHON)
        assert drawn["center"] == state.cells[i].center
        cell, texts = state.cells[i], [mark[0] for mark in in_group(group)]
        question = cell.content == Content.QUESTION and not cell.siphoned
        assert ("?" in texts) == question
        names = set(texts) & set(PROGRAM_INDEX)
        assert names == (
            {PROGRAMS[cell.program].name} if cell.is_program and not question else set()
        )
        if not cell.is_block:
            assert drawn["transmission"] == (coming is not None)
            assert (drawn["credits"], drawn["energy"]) == (
                cell.credits,
                cell.energy,
            )


# --- what is hidden ------------------------------------------------------------------------------


def otherwise_hidden(state: State, rng: random.Random) -> State:
    """The same to the player: another game's dice, other hidden contents, types and cryptogs."""
    other = other_secrets(state, rng)
    for coming in other.transmissions:
        coming.from_siphon = rng.random() < 0.5
    for enemy in other.enemies:
        if not other.sees(enemy):
            enemy.hp, enemy.stunned = rng.randint(1, 2), rng.random() < 0.5
    return other


@settings(max_examples=20)
@given(legal_states(), st.integers(0, 2**32 - 1))
def test_what_is_hidden_changes_nothing(data: Data, seed: int) -> None:
    state = Game.from_dict(data).state
    assert draw(state) == draw(otherwise_hidden(state, random.Random(seed)))


def test_a_hidden_cryptog_leaves_a_trace_and_can_be_revealed() -> None:
    text = CROWDED.replace("enemy cryptog 0,3 last 0,2", "enemy cryptog 3,4 last 4,4")
    text = text.replace(".@ .. .. .c", ".@ .. .. ..").replace(".v .. .+\n", ".v .c .+\n")
    game = Game.from_text(text)
    assert not shapes_on(game, 3, 4)["cryptog"]
    assert shapes_on(game, 4, 4)["last_seen"] == 1
    assert shapes_on(game, 3, 4, reveal=True)["cryptog"] == 1
    assert "?" in texts_on(game, 3, 4, reveal=True)


def test_reveal_shows_contents_and_types_with_a_question_mark() -> None:
    game = Game.from_text(CROWDED)
    assert texts_on(game, 4, 2, reveal=True) == ["9", "?", "9"]
    assert shapes_on(game, 2, 5, reveal=True)["daemon"] == 1
    assert not shapes_on(game, 2, 5)["daemon"]


# --- the file ------------------------------------------------------------------------------------


def check_file(text: str) -> ElementTree.Element:
    """Well-formed, with a title, and every reference leads to a definition of the same file."""
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert {element.tag for element in root.iter()} <= {
        SVG + name for name in ("svg", "title", "desc", "defs", "rect", "g", "path", "use")
    }
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    used = {element.get("href", "").removeprefix("#") for element in root.iter(f"{SVG}use")}
    assert used <= set(ids)
    return root


@settings(max_examples=15)
@given(legal_states(ended=True), st.booleans())
def test_any_state_makes_a_proper_file(data: Data, reveal: bool) -> None:
    game = Game.from_dict(data)
    text = draw(game, reveal=reveal)
    check_file(text)
    assert len(text) < 60_000
    assert text == draw(Game.from_dict(data), reveal=reveal)


def test_the_description_is_the_text_form() -> None:
    root = check_file(draw(Game.from_text(CROWDED)))
    description = root.findtext(f"{SVG}desc") or ""
    assert description.splitlines()[:6] == CROWDED.strip().splitlines()[:6]
    assert "5,4 enemy daemon hp 2" in description
    assert "player hp 2 credits 14" in description
    assert root.findtext(f"{SVG}title") == "HackMatrix: stage 6 of 8, turn 14"


def test_texts_are_escaped() -> None:
    text = svg(10, 10, [SvgGroup("<a&b>", 0, 0, ())], "1 < 2 & 3", "</desc>")
    root = ElementTree.fromstring(text)
    assert root.findtext(f"{SVG}title") == "1 < 2 & 3"
    assert root.findtext(f"{SVG}desc") == "</desc>"
    assert root.findtext(f"{SVG}g/{SVG}title") == "<a&b>"


def test_an_id_means_the_same_in_all_pictures() -> None:
    meanings: dict[str, bytes] = {}
    for game in (Game.new(7), Game.new(8), Game.from_text(CROWDED)):
        for element in check_file(draw(game)).iter():
            if name := element.get("id"):
                text = ElementTree.tostring(element).strip()
                assert meanings.setdefault(name, text) == text


def test_notebooks_show_the_picture() -> None:
    picture = hackmatrix.game.drawing.draw(Game.new(7))
    assert picture._repr_svg_() == picture


# --- what can be drawn ---------------------------------------------------------------------------


def test_states_of_all_kinds_are_drawn_alike() -> None:
    game = Game.from_text(CROWDED)
    jax_state = state_from_engine(game.state)
    env_state = EnvState(game=jax_state, episode_return=np.int32(0), episode_length=np.int32(0))
    assert draw(game) == draw(game.state) == draw(env_state)


def test_a_batch_of_games_is_refused() -> None:
    one: Any = state_from_engine(Game.new(1).state)
    sums = np.zeros(3, np.int32)
    batch = EnvState(jax.tree.map(lambda x: np.stack([x, x, x]), one), sums, sums)
    with pytest.raises(ValueError, match="the state holds 3 games; take one of them"):
        draw(batch)


def test_other_things_are_refused() -> None:
    with pytest.raises(TypeError, match="expected a game or its state, got str"):
        draw("a game")


def test_drawing_the_python_engine_needs_neither_jax_nor_numpy() -> None:
    code = (
        "import sys; from hackmatrix.game.drawing import draw; "
        "from hackmatrix.game.engine import Game; "
        "draw(Game.new(1)); assert not {'jax', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_picture_in_the_documents_is_what_the_command_draws() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "hackmatrix.game.drawing"],
        input=(DOCS / "board.txt").read_bytes(),
        capture_output=True,
    )
    assert result.stdout == (DOCS / "board.svg").read_bytes(), result.stderr.decode()
