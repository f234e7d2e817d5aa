"""Everything random in sections 4, 6, 8, 9 and 10 of the rules has the distribution they give it.

Chi-square tests on fixed streams, so that they are not random themselves. Each is also shown a
wrong distribution, which it must refuse.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from itertools import combinations, cycle, permutations, product

import pytest
from scipy import stats

from hackmatrix.game.engine import enemy_turn, stage
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.programs import poly, warp
from hackmatrix.game.engine.spawning import line_of_fire, spawn, spawn_cells
from hackmatrix.game.engine.stage import begin_stage, choose_layout, is_valid_layout
from hackmatrix.game.engine.state import Cell, Enemy, Player, State, Transmission
from hackmatrix.game.rules.board import CELLS, CORNERS, Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import START_BONUSES

pytestmark = pytest.mark.thorough

LIKELY = 1e-4
GAMES = 3_000
V, D, G, C = EnemyType

Chances = Mapping[Hashable, float]


def p_value(outcomes: Iterable[Hashable], chances: Chances) -> float:
    """The probability of outcomes at least so far from the expected ones."""
    counts = Counter(outcomes)
    if not counts.keys() <= chances.keys():
        return 0.0
    total = sum(counts.values()) / sum(chances.values())
    kinds = list(chances)
    return float(
        stats.chisquare([counts[k] for k in kinds], [chances[k] * total for k in kinds]).pvalue
    )


def evenly(kinds: Iterable[Hashable]) -> Chances:
    return dict.fromkeys(kinds, 1.0)


def skewed(chances: Chances) -> Chances:
    """The same with every second kind half as likely again."""
    factors = cycle((1.5, 1.0))
    return {kind: chance * next(factors) for kind, chance in chances.items()}


def assert_fits(
    outcomes: Iterable[Hashable], chances: Chances, wrong: Chances | None = None
) -> None:
    """The outcomes fit these chances and no others."""
    seen = list(outcomes)
    assert p_value(seen, chances) > LIKELY
    assert p_value(seen, wrong or skewed(chances)) < LIKELY


def state_with(
    stream: int,
    *,
    player: int = 14,
    blocks: Iterable[int] = (),
    enemies: Iterable[Enemy] = (),
    transmissions: Iterable[Transmission] = (),
) -> State:
    """A position with nothing but these."""
    state = State(player=Player(player), dice=Dice(stream, 0), exit=35)
    state.cells[35].content = Content.EXIT
    for cell in blocks:
        state.cells[cell] = Cell(Content.DATA, points=1, spawn=1)
    state.enemies, state.transmissions = list(enemies), list(transmissions)
    return state


@cache
def new_games() -> list[State]:
    return [Game.new(stream).state for stream in range(GAMES)]


def blocks_of(games: Iterable[State]) -> list[Cell]:
    return [cell for game in games for cell in game.cells if cell.is_block]


# --- section 10: a game begins -------------------------------------------------------------------


def test_start_corner() -> None:
    assert_fits((game.player.cell for game in new_games()), evenly(CORNERS))


def test_start_bonus() -> None:
    bonuses = ((p.credits, p.energy, p.siphons) for p in (game.player for game in new_games()))
    assert_fits(bonuses, evenly(START_BONUSES))


def test_corner_and_bonus_are_independent() -> None:
    pairs = ((game.player.cell, game.player.siphons) for game in new_games())
    chances = {(c, s): 1 + (s == 0) for c, s in product(CORNERS, (0, 1))}
    assert p_value(pairs, chances) > LIKELY


# --- section 9: a stage begins -------------------------------------------------------------------


def test_exit_corner() -> None:
    corners = ((game.player.cell, game.exit) for game in new_games())
    assert_fits(corners, evenly(permutations(CORNERS, 2)))


def test_number_of_blocks() -> None:
    numbers = (len(blocks_of([game])) for game in new_games())
    assert_fits((n for n in numbers if n), evenly(range(5, 12)))  # none after 100 failed layouts


def test_content_of_blocks() -> None:
    kinds = ((block.is_data, block.content == Content.QUESTION) for block in blocks_of(new_games()))
    chances = {(True, False): 0.45, (True, True): 0.05, (False, False): 0.45, (False, True): 0.05}
    assert_fits(kinds, chances)


def test_points() -> None:
    data = [block for block in blocks_of(new_games()) if block.is_data]
    assert_fits((block.points for block in data), evenly(range(1, 10)))
    assert all(block.spawn == block.points for block in data)


def test_programs() -> None:
    boards = [[b.program for b in blocks_of([game]) if b.is_program] for game in new_games()]
    assert_fits((program for board in boards for program in board), evenly(range(len(PROGRAMS))))
    assert all(len(set(board)) == len(board) for board in boards)
    pairs = (frozenset(pair) for board in boards for pair in combinations(board, 2))
    every_pair = map(frozenset, combinations(range(len(PROGRAMS)), 2))
    assert p_value(pairs, evenly(every_pair)) > LIKELY


RESOURCES: Chances = {
    (kind, amount): chance
    for kind in ("credits", "energy")
    for amount, chance in ((1, 0.45), (2, 0.45), (3, 0.10))
}


def resource(cell: Cell) -> tuple[str, int]:
    return ("credits", cell.credits) if cell.credits else ("energy", cell.energy)


def test_resources() -> None:
    cells = [c for game in new_games() for c in game.cells if c.credits or c.energy]
    assert_fits(map(resource, cells), RESOURCES, wrong={**RESOURCES, ("energy", 3): 0.11})


def test_resources_of_neighbours_are_independent() -> None:
    pairs = [
        (resource(a), resource(b))
        for game in new_games()
        for a, b in zip(game.cells, game.cells[1:], strict=False)
        if (a.credits or a.energy) and (b.credits or b.energy)
    ]
    chances = {(a, b): RESOURCES[a] * RESOURCES[b] for a, b in product(RESOURCES, RESOURCES)}
    assert_fits(pairs, chances)


def test_cells_of_a_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn among those free of pieces; which layouts are valid is left out here."""
    monkeypatch.setattr(stage, "is_valid_layout", lambda _blocks, _exit: True)
    pieces = [Enemy(V, 7, 2), Enemy(D, 8, 3)], [Transmission(9, 1, G)]
    free = sorted({*range(CELLS)} - {*CORNERS, 7, 8, 9})
    layouts = [
        choose_layout(state_with(i, enemies=pieces[0], transmissions=pieces[1]), 5)
        for i in range(GAMES)
    ]
    for place in range(5):
        assert p_value((layout[place] for layout in layouts), evenly(free)) > LIKELY
    assert_fits((cell for layout in layouts for cell in layout), evenly(free))
    pairs = (frozenset(pair) for layout in layouts for pair in combinations(layout, 2))
    assert p_value(pairs, evenly(map(frozenset, combinations(free, 2)))) > LIKELY


def test_valid_layouts_are_equally_likely() -> None:
    free = (1, 6, 7, 8, 13, 14, 20, 27)
    others = [Transmission(c, 1, V) for c in range(CELLS) if c not in (*free, *CORNERS)]
    layouts = [choose_layout(state_with(i, transmissions=others), 5) for i in range(GAMES)]
    subsets = map(frozenset, combinations(free, 5))
    valid = [subset for subset in subsets if is_valid_layout(set(subset), 35)]
    assert 10 < len(valid) < 50
    assert_fits(map(frozenset, layouts), evenly(valid), wrong=evenly(valid[1:]))


# --- section 6: spawns ---------------------------------------------------------------------------


def spawned(state: State, index: int = 0) -> Transmission:
    spawn(state, index)
    return state.transmissions[-1]


def test_spawn_cells_out_of_fire() -> None:
    enemies, waiting = [Enemy(V, 16, 2)], [Transmission(0, 1, V), Transmission(12, 1, V)]
    place = {"player": 14, "blocks": (20, 21), "enemies": enemies, "transmissions": waiting}
    row, column = {13, 15}, {2, 8}  # up the column stands a block, to the right an enemy
    free = {*range(CELLS)} - {14, 20, 21, 16, 0, 12} - row - column
    states = [state_with(i, **place) for i in range(GAMES)]
    assert line_of_fire(states[0]) == {2, 8, 12, 13, 15, 16, 20}
    assert spawn_cells(states[0]) == sorted(free)
    assert_fits((spawned(state).cell for state in states), evenly(free))


def test_spawn_cells_in_fire_where_there_are_no_others() -> None:
    in_fire = {2, 8, 12, 13, 20}
    blocks = {*range(CELLS)} - {14, *in_fire}
    states = (state_with(i, blocks=blocks) for i in range(GAMES))
    assert_fits((spawned(state).cell for state in states), evenly(in_fire))


def test_spawn_types() -> None:
    """They depend neither on the cell nor on the spawn before."""
    states = [state_with(i) for i in range(GAMES)]
    first, second = ([spawned(state, index) for state in states] for index in (0, 1))
    assert_fits((t.type for t in first), evenly(EnemyType))
    types = ((a.type, b.type) for a, b in zip(first, second, strict=True))
    assert_fits(types, evenly(product(EnemyType, EnemyType)))
    halves = ((t.cell < 18, t.type) for t in first)
    cells = Counter(cell < 18 for cell in spawn_cells(state_with(0)))
    assert_fits(halves, {(half, kind): cells[half] for half, kind in product(cells, EnemyType)})


# --- section 4: the enemy turn -------------------------------------------------------------------


def test_enemy_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 24 orders of four, in both sub-steps and independently."""
    orders: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for i in range(4 * GAMES):
        state = state_with(i, enemies=[Enemy(V, cell, 2) for cell in (0, 5, 30, 35)])
        acted = noted_order(state, monkeypatch)
        orders.append((tuple(acted[:4]), tuple(acted[4:])))
    every_order = list(permutations(range(4)))
    assert_fits((order for order, _ in orders), evenly(every_order))
    assert_fits((order for _, order in orders), evenly(every_order))
    assert p_value(orders, evenly(product(every_order, every_order))) > LIKELY


def noted_order(state: State, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The places of the enemies as they act; they stay where they are."""
    acted: list[int] = []
    places = {id(enemy): place for place, enemy in enumerate(state.enemies)}
    monkeypatch.setattr(enemy_turn, "act", lambda _state, e: acted.append(places[id(e)]))
    enemy_turn.move_enemies(state)
    return acted


def test_order_of_those_still_able_to_act(monkeypatch: pytest.MonkeyPatch) -> None:
    enemies = [Enemy(D, 0, 3), Enemy(D, 5, 3, stunned=True), Enemy(D, 30, 3), Enemy(D, 35, 3)]
    orders = (tuple(noted_order(state_with(i, enemies=enemies), monkeypatch)) for i in range(GAMES))
    assert_fits(orders, evenly(permutations((0, 2, 3))))


# --- section 8: programs -------------------------------------------------------------------------


def test_poly_types() -> None:
    made: dict[EnemyType, list[EnemyType]] = {kind: [] for kind in EnemyType}
    pairs: list[tuple[EnemyType, EnemyType]] = []
    for i in range(GAMES):
        state = state_with(
            i, enemies=[Enemy(V, 0, 2), Enemy(D, 1, 3), Enemy(G, 2, 2), Enemy(C, 3, 2)]
        )
        poly(state)
        kinds = [enemy.type for enemy in state.enemies]
        for old, new in zip(EnemyType, kinds, strict=True):
            made[old].append(new)
        pairs.append((kinds[0], kinds[1]))
    for old, new_types in made.items():
        assert_fits(new_types, evenly(kind for kind in EnemyType if kind != old))
    assert_fits(pairs, evenly(product((D, G, C), (V, G, C))))


def test_warp_target() -> None:
    """Every enemy and transmission alike, so a cell that two share is twice as likely."""
    cells = []
    for i in range(GAMES):
        enemies = [Enemy(V, 0, 2), Enemy(V, 0, 2), Enemy(D, 5, 3)]
        transmissions = [Transmission(5, 1, V), Transmission(7, 1, V), Transmission(9, 3, V)]
        state = state_with(i, enemies=enemies, transmissions=transmissions)
        warp(state)
        left = (len(state.enemies), len(state.transmissions))
        cells.append((state.player.cell, left))
    assert_fits(
        cells, {(0, (1, 3)): 2, (5, (2, 3)): 1, (5, (3, 2)): 1, (7, (3, 2)): 1, (9, (3, 2)): 1}
    )


# --- from turn to turn ---------------------------------------------------------------------------


def test_turns_are_independent() -> None:
    """The spawns of two actions of a game, and of the same action in two episodes."""
    by_clock, by_episode = [], []
    for i in range(GAMES):
        kinds = []
        for episode, clock in ((0, 1), (0, 2), (1, 1)):
            state = state_with(i)
            state.dice = Dice(i, episode, clock)
            kinds.append(spawned(state).type)
        by_clock.append((kinds[0], kinds[1]))
        by_episode.append((kinds[0], kinds[2]))
    assert_fits(by_clock, evenly(product(EnemyType, EnemyType)))
    assert_fits(by_episode, evenly(product(EnemyType, EnemyType)))


def test_new_stages_have_the_distributions_of_first_ones() -> None:
    exits, spawns = [], []
    for i in range(GAMES // 3):
        state = state_with(i, player=5)
        state.stage = 3
        begin_stage(state)
        exits.append(state.exit)
        spawns += [t.type for t in state.transmissions]
    assert_fits(exits, evenly((0, 30, 35)))
    assert_fits(spawns, evenly(EnemyType))
    assert len(spawns) == 3 * len(exits)
