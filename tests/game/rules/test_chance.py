"""Where chance decides: what it chooses among, and what each choice leads to.

The dice are replaced by some that write down what they are asked and show what they are told to.
How evenly the real ones fall is tested elsewhere.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from rule_cases import data_of, number_of

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.game import new_game
from hackmatrix.game.engine.text import drawing
from hackmatrix.game.rules.board import CORNERS
from hackmatrix.game.rules.chance import Site
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.stages import START_BONUSES


class ToldDice(Dice):
    """Shows the options of the places that were told, the first option elsewhere."""

    def __init__(self, **told: list[int]) -> None:
        super().__init__(0, 0)
        self.told = {Site[site]: list(options) for site, options in told.items()}
        self.asked: dict[Site, list[Sequence[Any]]] = {}
        self.indices: dict[Site, list[int]] = {}

    def choose(self, site: Site, options: Sequence[Any], index: int = 0) -> Any:
        self.asked.setdefault(site, []).append(list(options))
        self.indices.setdefault(site, []).append(index)
        told = self.told.get(site)
        return options[told.pop(0) if told else 0]


def played(text: str, do: str, **told: list[int]) -> tuple[Game, ToldDice]:
    game = Game.from_text(text)
    game.state.dice = dice = ToldDice(**told)
    for action in do.split():
        game.step(number_of(action))
    return game, dice


def cells(*places: str) -> list[int]:
    return [int(place[0]) * 6 + int(place[2]) for place in places]


# --- section 4: the enemy order ------------------------------------------------------------------

CORRIDOR = """
    X. .. .. .. .. ..
    .. .. .. .. .. ..
    D. D. D. D. D. D.
    .. .. .. .. .. ..
    D. D. D. D. .. D.
    .@ .. .. .d .. .v
    player energy 9
    owned WAIT
    enemy daemon 0,3
    enemy virus 0,5
"""


@pytest.mark.parametrize("first", [0, 1])
def test_enemies_act_one_by_one(first: int) -> None:
    game, dice = played(CORRIDOR, "WAIT", ENEMY_ORDER=[first])
    # Two in the first sub-step; in the second one the virus alone.
    assert [len(options) for options in dice.asked[Site.ENEMY_ORDER]] == [2, 1, 1]
    assert dice.indices[Site.ENEMY_ORDER] == [0, 1, 32]
    assert [enemy.cell for enemy in game.state.enemies] == cells("0,2", "0,3")


def test_the_order_decides_who_gets_a_cell() -> None:
    text = """
        X. .. .. .. .. ..
        .. .. .. .. .. ..
        D. D. D. D. D. D.
        .@ .. .. .d D. D.
        D. D. .g D. D. D.
        D. D. D. D. D. D.
        player energy 9
        owned WAIT
        enemy daemon 2,3
        enemy glitch 1,2
    """
    game, _ = played(text, "WAIT", ENEMY_ORDER=[0])
    assert [(e.cell, e.type.name) for e in game.state.enemies] == [(14, "DAEMON"), (7, "GLITCH")]
    game, _ = played(text, "WAIT", ENEMY_ORDER=[1])
    assert [(e.cell, e.type.name) for e in game.state.enemies] == [(15, "DAEMON"), (14, "GLITCH")]


def test_each_sub_step_has_a_fresh_order_of_those_that_can_act() -> None:
    text = """
        X. .. .. .. .. .v
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        .v .. .. .. .. ..
        .@ .. .. .c .d .g
        player energy 9
        owned WAIT
        enemy virus 5,5
        enemy virus 1,0
        enemy cryptog 0,3 stunned
        enemy daemon 0,4 disabled 1
        enemy glitch 0,5
    """
    game, dice = played(text, "WAIT", ENEMY_ORDER=[2, 1])
    names = [
        [(enemy.type.name, enemy is game.state.enemies[1]) for enemy in options]
        for options in dice.asked[Site.ENEMY_ORDER]
    ]
    far, near, glitch = ("VIRUS", False), ("VIRUS", True), ("GLITCH", False)
    # The near virus has hit, so only the far one acts in the second sub-step.
    assert names == [[far, near, glitch], [far, near], [far], [far]]
    assert dice.indices[Site.ENEMY_ORDER] == [0, 1, 2, 32]
    assert game.state.player.hp == 2


# --- section 6: where transmissions may appear ---------------------------------------------------

SPAWN = """
    X. D. D. D. D. D.
    .. D. D. D. D. D.
    .. .. .. .. D. ..
    .+ D. s. D. D. D.
    .@ .. .d .. D. D.
    .. D. .. D. D. .v
    pending 2
    player energy 9
    owned WAIT
    enemy daemon 1,2 disabled 9
    enemy virus 0,5 disabled 9
    transmission virus 2,0 turns 9
"""


def test_spawns_are_drawn_among_the_empty_cells_out_of_fire() -> None:
    _, dice = played(SPAWN, "WAIT", SPAWN_CELL=[1])
    # Not the column (the transmission does not shield), nor (1,1); behind the enemy is out of fire.
    allowed = cells("0,2", "1,3", "2,2", "3,1", "3,2", "3,3", "3,5")
    assert dice.asked[Site.SPAWN_CELL] == [allowed, [c for c in allowed if c != 9]]
    assert dice.asked[Site.SPAWN_TYPE] == [list(EnemyType)] * 2
    assert dice.indices[Site.SPAWN_CELL] == dice.indices[Site.SPAWN_TYPE] == [1, 2]


def test_without_such_a_cell_among_all_empty_ones() -> None:
    text = SPAWN.replace(".d .. D.", ".d D. D.").replace(".. D. .. D. D. .v", ".. D. D. D. D. .v")
    text = text.replace(".+ D. s. D.", ".+ D. D. D.").replace(
        ".. .. .. .. D. ..", ".. D. D. D. D. D."
    )
    _, dice = played(text, "WAIT")
    empty = cells("0,0", "1,1", "3,0", "4,0", "5,0")
    assert dice.asked[Site.SPAWN_CELL] == [empty, empty[1:]]


def test_the_scheduled_spawn_is_drawn_first() -> None:
    _, dice = played(SPAWN + "    next_task 1\n", "WAIT")
    assert dice.indices[Site.SPAWN_CELL] == [0, 1, 2]


# --- section 8: WARP and POLY --------------------------------------------------------------------

ENEMIES = """
    X. .. .. .. .. ..
    .. .. .v .. .. .d
    .. .. .. .. .. ..
    .g .. .. .. .. .+
    .. .. .. .. .. .c
    .@ .. .. .. .. .+
    player credits 9 energy 9
    owned WARP POLY
    enemy virus 4,2 hp 1 stunned
    enemy daemon 4,5 hp 1 from_schedule
    enemy glitch 2,0
    enemy virus 4,2 disabled 2
    enemy cryptog 1,5 last 3,3 hp 1
    transmission virus 0,5 turns 3
    transmission virus 2,5 turns 3
"""


@pytest.mark.parametrize(
    ("chosen", "place", "enemies", "transmissions", "kills"),
    [
        (0, "4,2", 3, 2, 1),
        (1, "4,5", 4, 2, 0),
        (2, "2,0", 4, 2, 1),
        (3, "4,2", 3, 2, 1),
        (4, "1,5", 4, 2, 1),
        (5, "0,5", 5, 1, 1),
        (6, "2,5", 5, 1, 1),
    ],
)
def test_warp_chooses_among_enemies_then_transmissions(
    chosen: int, place: str, enemies: int, transmissions: int, kills: int
) -> None:
    game = Game.from_text(ENEMIES)
    game.state.dice = dice = ToldDice(WARP_TARGET=[chosen])
    outcome = game.step(number_of("WARP"))
    assert [len(options) for options in dice.asked[Site.WARP_TARGET]] == [7]
    assert [game.state.player.cell] == cells(place)
    assert (len(game.state.enemies), len(game.state.transmissions)) == (enemies, transmissions)
    assert outcome.parts["kills"] == 60 * kills


def test_warp_onto_a_shared_cell_spares_the_transmission_there() -> None:
    text = ENEMIES.replace("2,5 turns", "4,2 turns").replace(
        ".g .. .. .. .. .+", ".g .. .. .. .. .."
    )
    game, _ = played(text, "WARP", WARP_TARGET=[0])
    assert [t.cell for t in game.state.transmissions] == cells("0,5", "4,2")
    game, _ = played(text, "WARP", WARP_TARGET=[6])
    assert [t.cell for t in game.state.transmissions] == cells("0,5")
    assert len(game.state.enemies) == 5


@pytest.mark.parametrize("choice", [0, 1, 2])
def test_poly(choice: int) -> None:
    before = data_of(ENEMIES)["enemies"]
    game, dice = played(ENEMIES, "POLY", POLY_TYPE=[choice] * 5)
    others = [[k for k in EnemyType if k.name.lower() != e["type"]] for e in before]
    assert dice.asked[Site.POLY_TYPE] == others
    assert dice.indices[Site.POLY_TYPE] == [0, 1, 2, 3, 4]
    expected = []
    for enemy, options in zip(before, others, strict=True):
        kind = options[choice]
        damage = MAX_HP[EnemyType[enemy["type"].upper()]] - enemy["hp"]
        after = {**enemy, "type": kind.name.lower(), "hp": MAX_HP[kind] - damage}
        after.pop("last", None)
        if kind == EnemyType.CRYPTOG:  # where it is made is where it was last seen
            after["last"] = [enemy["row"], enemy["col"]]
        if after["hp"] > 0:
            expected.append(after)
    assert game.to_dict()["enemies"] == expected
    assert len(expected) == 4  # the daemon with 1 hp is gone


def test_a_cryptog_made_by_poly_was_last_seen_where_it_is() -> None:
    text = """
        X. .. .. .. .. .d
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        .@ .. .. .. .. ..
        player energy 9 credits 9
        owned WAIT POLY
    """
    game, _ = played(text, "WAIT POLY", POLY_TYPE=[2])
    (cryptog,) = game.to_dict()["enemies"]
    assert (cryptog["type"], cryptog["row"], cryptog["last"]) == ("cryptog", 4, [4, 5])


def test_poly_pays_for_those_that_die() -> None:
    text = ENEMIES.replace(" from_schedule", "")
    game = Game.from_text(text)
    game.state.dice = ToldDice()
    assert game.step(number_of("POLY")).parts["kills"] == 60


# --- sections 9 and 10: stages and new games -----------------------------------------------------


def test_what_a_new_game_draws() -> None:
    dice = ToldDice(START_CORNER=[2], START_BONUS=[1], EXIT_CORNER=[1], BLOCK_COUNT=[3])
    dice.told[Site.BLOCK_IS_DATA] = [1, 0, 1, 0]
    dice.told[Site.BLOCK_CELL] = [5, 6, 7, 14, 15, 16, 22, 23]  # in rows 1, 3 and 5
    state = new_game(dice)
    assert dice.asked[Site.START_CORNER] == [list(CORNERS)]
    assert dice.asked[Site.START_BONUS] == [list(START_BONUSES)]
    assert dice.asked[Site.EXIT_CORNER] == [[0, 5, 35]]
    assert dice.asked[Site.BLOCK_COUNT] == [list(range(5, 12))]
    assert dice.asked[Site.BLOCK_IS_DATA] == [[True, False]] * 8
    assert dice.asked[Site.BLOCK_IS_QUESTION] == [[True] + [False] * 9] * 8
    assert dice.asked[Site.BLOCK_POINTS] == [list(range(1, 10))] * 6
    # The second program block cannot carry the program of the first.
    assert dice.asked[Site.BLOCK_PROGRAM] == [list(range(23)), list(range(1, 23))]
    assert dice.asked[Site.RESOURCE_IS_CREDITS] == [[True, False]] * 27
    assert dice.asked[Site.RESOURCE_AMOUNT] == [[1] * 9 + [2] * 9 + [3] * 2] * 27
    # Each draw has an index of its own: the block, or the cell.
    data = [1, 3, 4, 5, 6, 7]  # told so above; the others hold programs
    assert dice.indices[Site.BLOCK_IS_DATA] == dice.indices[Site.BLOCK_IS_QUESTION] == [*range(8)]
    assert dice.indices[Site.BLOCK_POINTS] == data
    assert dice.indices[Site.BLOCK_PROGRAM] == [0, 2]
    open_cells = [c for c in range(36) if c not in state.blocks() | {state.exit}]
    assert dice.indices[Site.RESOURCE_IS_CREDITS] == open_cells
    assert dice.indices[Site.RESOURCE_AMOUNT] == open_cells
    assert (state.player.cell, state.exit, state.player.energy) == (30, 5, 11)


def test_a_layout_that_is_not_valid_is_drawn_again() -> None:
    walls_in_a_corner, valid = [0, 3, 3, 3, 3], [5, 6, 10, 11, 13]
    dice = ToldDice(BLOCK_COUNT=[0], BLOCK_CELL=walls_in_a_corner + valid)
    state = new_game(dice)
    assert dice.indices[Site.BLOCK_CELL] == [0, 1, 2, 3, 4, 16, 17, 18, 19, 20]
    assert dice.asked[Site.BLOCK_CELL][0] == [c for c in range(36) if c not in CORNERS]
    assert state.blocks() == {7, 9, 14, 16, 19}


def test_after_a_hundred_layouts_that_are_not_valid_there_are_no_blocks() -> None:
    dice = ToldDice(BLOCK_COUNT=[0], BLOCK_CELL=100 * [0, 3, 3, 3, 3])
    state = new_game(dice)
    assert not state.blocks()
    assert dice.indices[Site.BLOCK_CELL][-1] == 99 * 16 + 4


def test_a_new_stage_draws_its_cells_around_the_pieces() -> None:
    text = """
        .. .. .. .+ .. X.
        .. .g .. .. .. .@
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        transmission virus 5,3 turns 3
    """
    game, dice = played(text, "up", BLOCK_COUNT=[6], EXIT_CORNER=[0])
    free = [c for c in range(36) if c not in (*CORNERS, *cells("5,3", "4,1"))]
    assert dice.asked[Site.BLOCK_CELL][0] == free
    assert dice.indices[Site.SPAWN_CELL] == [0, 1]
    drawn = drawing(game.to_dict())
    assert drawn[0].endswith("@")
    in_fire = {c for c in range(36) if c // 6 == 5 or c % 6 == 5}
    assert not set(dice.asked[Site.SPAWN_CELL][0]) & (in_fire - set(cells("5,0", "5,1", "5,2")))


def test_the_clock_of_the_dice_counts_actions_and_begins_anew() -> None:
    text = "X. .. .. .. .. ..\n" + 4 * ".. .. .. .. .. ..\n" + ".@ .. .. .. .. .."
    game, dice = played(text, "up up")
    assert dice.clock == 2
    dice.clock = 0xFFFFFFFF
    game.step(number_of("down"))
    assert dice.clock == 0


def test_a_stream_begins_with_its_game_0() -> None:
    assert Game.new(7).state == Game.new(7, 0).state
    assert Game.new(7).state != Game.new(7, 1).state
