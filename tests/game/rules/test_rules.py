"""Every case of the text files beside this one on every engine, then limits, stages and new games.

They are in one file as the engine in JAX takes long to trace.
"""

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rule_cases import Case, Data, Engine, check, data_of, number_of, play, read_cases

from hackmatrix.game.engine import Game
from hackmatrix.game.engine.game import GameOverError
from hackmatrix.game.rules.board import CORNERS, LIMIT, NEIGHBOURS
from hackmatrix.game.rules.programs import PROGRAM_INDEX, PROGRAMS
from hackmatrix.game.rules.rewards import STAGE_COMPLETION

FILES = sorted(Path(__file__).parent.glob("*.txt"))
CASES = [
    pytest.param(case, id=f"{file.stem}: {case.rule}")
    for file in FILES
    for case in read_cases(file)
]


@pytest.mark.parametrize("case", CASES)
def test_rule(engine: Engine, case: Case) -> None:
    check(engine, case)


# --- sections 2 and 10: at most 32 enemies, saturation at 32,767 ---

EMPTY = """
    X. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .@ .. .. .. .. ..
    player energy 9
    owned WAIT DELAY
"""


def crowd(enemies: int, **facts: Any) -> list[Data]:
    daemon = {"type": "daemon", "row": 5, "col": 5, "hp": 3, "disabled": 9}
    return [{**daemon, **facts} for _ in range(enemies)]


def coming(col: int, turns: int) -> Data:
    return {"type": "virus", "row": 3, "col": col, "turns": turns}


@pytest.mark.parametrize(("living", "landed"), [(29, 3), (30, 2), (31, 1), (32, 0)])
def test_at_most_32_enemies(engine: Engine, living: int, landed: int) -> None:
    turns = [1, 4, 0, 1]
    before = {
        **data_of(EMPTY),
        "enemies": crowd(living),
        "transmissions": [coming(col, n) for col, n in enumerate(turns)],
    }
    after, _, _ = play(engine, before, "WAIT")
    assert len(after["enemies"]) == living + landed
    assert [enemy["col"] for enemy in after["enemies"][living:]] == [0, 2, 3][:landed]
    waiting = [(t["col"], t["turns"]) for t in after["transmissions"]]
    assert waiting == sorted([(1, 3), *((col, 1) for col in [0, 2, 3][landed:])])


def test_the_one_that_waited_lands_when_there_is_room(engine: Engine) -> None:
    beside_the_player = crowd(1, row=0, col=1, hp=1)
    before = {
        **data_of(EMPTY),
        "enemies": beside_the_player + crowd(31),
        "transmissions": [coming(0, 1)],
    }
    after, _, _ = play(engine, before, "WAIT right")
    assert [enemy["type"] for enemy in after["enemies"]] == ["daemon"] * 31 + ["virus"]
    assert after["transmissions"] == []


def test_turn_and_next_task_saturate(engine: Engine) -> None:
    before = {**data_of(EMPTY), "turn": LIMIT, "next_task": LIMIT, "interval": 12}
    after, _, _ = play(engine, before, "WAIT")
    assert (after["turn"], after["next_task"]) == (LIMIT, LIMIT)
    assert len(after["transmissions"]) == 1


def test_next_task_saturates_by_siphoning(engine: Engine) -> None:
    before = data_of(EMPTY + "    next_task 32764\n    player siphons 1\n    flags calm\n")
    after, _, _ = play(engine, before, "siphon")
    assert after["next_task"] == LIMIT


def test_pending_saturates(engine: Engine) -> None:
    text = EMPTY.replace(".@ ..", ".@ D.") + "    cell 0,1 spawn 99\n    player siphons 1\n"
    before = {**data_of(text), "pending": LIMIT - 5, "step": True}
    after, _, _ = play(engine, before, "siphon")
    assert after["pending"] == LIMIT


def test_more_pending_than_cells(engine: Engine) -> None:
    after, _, _ = play(engine, {**data_of(EMPTY), "pending": LIMIT}, "WAIT")
    cells = {(t["row"], t["col"]) for t in after["transmissions"]}
    assert len(cells) == len(after["transmissions"]) == 35  # all but the player's
    assert after["pending"] == 0


def test_the_turns_of_transmissions_saturate(engine: Engine) -> None:
    before = {**data_of(EMPTY), "transmissions": [coming(0, LIMIT - 1)]}
    before["player"]["credits"] = 1
    after, _, _ = play(engine, before, "DELAY")
    assert after["transmissions"][0]["turns"] == LIMIT


# --- after the end -------------------------------------------------------------------------------


@pytest.mark.parametrize("over", ["won", "died", "invalid_action"])
def test_after_the_end_step_raises(over: str) -> None:
    game = Game.from_text(EMPTY + f"    over {over}\n")
    before = game.to_dict()
    with pytest.raises(GameOverError):
        game.step(0)
    assert game.to_dict() == before
    assert game.valid_actions() == []


@pytest.mark.parametrize("action", [-1, 28, 1000])
def test_an_action_that_is_none_is_refused(action: int) -> None:
    game = Game.from_text(EMPTY)
    before = game.to_dict()
    with pytest.raises(ValueError, match=r"action must be 0\.\.27"):
        game.step(action)
    assert game.to_dict() == before


# --- sections 9 and 10: a new stage and a new game, whatever the dice show ---

STREAMS = 60
BEFORE = """
    .. .. .. .+ .. X.
    .. .g .. .. .. .@
    .. .. .. .. P. ..
    .. .. .. .. .. ..
    s. .. .c D. .. ..
    .. .. .. .. .. s.
    stage 3 interval 6 next_task 2 turn 9 pending 7 atk_uses 2
    flags show calm
    player hp 1 credits 11 energy 7 siphons 4 attack 3 score 12
    owned HACK WAIT STEP
    cell 1,3 siphoned points 3
    cell 0,0 siphoned center credits 2
    enemy glitch 4,1 hp 1 stunned from_schedule
    enemy cryptog 1,2 disabled 1 last 3,3 from_siphon
    transmission virus 5,3 turns 4 from_siphon
"""


def completed(engine: Engine, text: str = BEFORE) -> list[Data]:
    """The states after an action that completes a stage, under many dice."""
    return _completed(type(engine), text)


@cache
def _completed(kind: type[Engine], text: str) -> list[Data]:
    before = [{**data_of(text), "stream": stream} for stream in range(STREAMS)]
    return kind().after(before, number_of("up"))


def cell_of(piece: Data) -> int:
    return int(piece["row"] * 6 + piece["col"])


def blocks_of(data: Data) -> dict[int, Data]:
    kinds = ("data", "program", "question")
    return {i: cell for i, cell in enumerate(data["cells"]) if cell["content"] in kinds}


def test_what_begins_anew_and_what_is_kept(engine: Engine) -> None:
    before = data_of(BEFORE)
    for after in completed(engine):
        assert after["stage"] == 4
        assert after["interval"] == after["next_task"] == 9
        assert after["turn"] == after["atk_uses"] == 0
        assert (after["show"], after["calm"], after["step"]) == (False, False, False)
        assert after["saved"] == []
        assert not any("siphoned" in cell or "center" in cell for cell in after["cells"])
        assert after["over"] is None
        assert after["player"] == {**before["player"], "row": 5, "hp": 2}
        assert after["owned"] == before["owned"]
        assert after["pending"] == 7
        assert after["enemies"] == before["enemies"]
        assert after["transmissions"][:1] == before["transmissions"]


def test_saved_states_are_forgotten(engine: Engine) -> None:
    text = CORNERS_TAKEN.replace("s+ ..", "s. ..").replace("sd ..", "s. ..").replace("sv", "s.")
    before = data_of(text + "player credits 9\nowned UNDO\n")
    assert "UNDO" in play(engine, before, "down up")[2]
    after, _, mask = play(engine, before, "down up up")
    assert after["stage"] == 2
    assert after["saved"] == []
    assert "UNDO" not in mask


def test_step_ends_with_the_stage(engine: Engine) -> None:
    for after in completed(engine, BEFORE.replace("show calm", "step")):
        assert not after["step"]


@pytest.mark.parametrize(("stage", "hp"), [(stage, 1 + stage % 3) for stage in range(1, 8)])
def test_completing_a_stage(engine: Engine, stage: int, hp: int) -> None:
    text = BEFORE.replace("stage 3", f"stage {stage}").replace("hp 1 credits", f"hp {hp} credits")
    after, parts, _ = play(engine, text, "up")
    assert after["stage"] == stage + 1
    assert after["interval"] == after["next_task"] == 13 - (stage + 1)
    assert after["player"]["hp"] == min(hp + 1, 3)
    assert parts["stage_completion"] == STAGE_COMPLETION[stage - 1]
    assert parts["hp_recovery"] == (200 if hp < 3 else 0)
    assert parts["resource_holding"] == 2 * (11 + 7)
    assert parts["distance_shaping"] == 10
    assert sum(t["turns"] == 1 for t in after["transmissions"]) == stage + 1


def test_the_values_of_completed_stages() -> None:
    assert [units / 200 for units in STAGE_COMPLETION] == [1, 2, 4, 8, 16, 32, 64, 100]


def test_exit_and_siphons_take_the_corners_but_the_players(engine: Engine) -> None:
    exits = set()
    for after in completed(engine):
        exits.add(tuple(after["exit"]))
        contents = Counter(after["cells"][corner]["content"] for corner in CORNERS)
        assert contents == {"exit": 1, "siphon": 2, "empty": 1}
        assert after["cells"][35]["content"] == "empty"
    assert exits == {(0, 0), (0, 5), (5, 0)}


CORNERS_TAKEN = """
    s+ .. .. .. .. X.
    .. .. .. .. .. .@
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    .. .. .. .. .. ..
    sd .. .. .. .. sv
"""


def test_corners_are_dealt_whoever_stands_there(engine: Engine) -> None:
    exits = {tuple(after["exit"]) for after in completed(engine, CORNERS_TAKEN)}
    assert exits == {(0, 0), (0, 5), (5, 0)}


def test_blocks(engine: Engine) -> None:
    counts, seen = set(), Counter[str]()
    for after in completed(engine):
        blocks = blocks_of(after)
        counts.add(len(blocks))
        taken = {cell_of(piece) for piece in after["enemies"] + after["transmissions"][:1]}
        assert not blocks.keys() & (taken | set(CORNERS))
        programs = [block["program"] for block in blocks.values() if "program" in block]
        assert len(set(programs)) == len(programs)
        seen.update(programs)
        for block in blocks.values():
            if "program" in block:
                assert block["spawn"] == PROGRAMS[PROGRAM_INDEX[block["program"]]].spawn
            else:
                assert 1 <= block["points"] == block["spawn"] <= 9
            holds_data = block["content"] == "question" and "points" in block
            assert block.get("holds_data", False) == holds_data
            seen[block["content"] + " data" * holds_data] += 1
    assert counts == set(range(5, 12))
    assert {"data", "program", "question", "question data"} < set(seen)
    assert {"HACK", "WAIT"} < set(seen)  # programs that are owned come too


def test_layouts_are_valid(engine: Engine) -> None:
    for after in completed(engine):
        blocks, exit = blocks_of(after).keys(), after["exit"][0] * 6 + after["exit"][1]
        assert all(set(NEIGHBOURS[block]) - blocks for block in blocks)
        reached, frontier = {0}, [0]
        while frontier:
            cell = frontier.pop()
            if cell != exit or exit == 0:
                new = set(NEIGHBOURS[cell]) - blocks - reached
                reached |= new
                frontier += new
        assert len(reached) == 36 - len(blocks)


def test_resources(engine: Engine) -> None:
    amounts = Counter[int]()
    for after in completed(engine):
        for cell in after["cells"]:
            has = [cell[name] for name in ("credits", "energy") if name in cell]
            assert len(has) == (cell["content"] in ("empty", "siphon"))
            amounts.update(has)
    assert set(amounts) == {1, 2, 3}
    assert 0.05 < amounts[3] / amounts.total() < 0.15


def test_transmissions_of_a_new_stage(engine: Engine) -> None:
    kinds = Counter[str]()
    for after in completed(engine):
        spawned = after["transmissions"][1:]
        assert len(spawned) == 4
        for transmission in spawned:
            kinds[transmission["type"]] += 1
            assert transmission["turns"] == 1
            assert transmission.keys() == {"type", "row", "col", "turns"}
            content = after["cells"][cell_of(transmission)]["content"]
            assert content in ("empty", "siphon", "exit")
        cells = [cell_of(piece) for piece in after["transmissions"] + after["enemies"]]
        assert len(set(cells)) == len(cells)
    assert set(kinds) == {"virus", "daemon", "glitch", "cryptog"}


def crowded(free: list[int]) -> str:
    """Enemies on every cell but corners and the free ones; the player stands below the exit."""
    drawn = [["..", "..", "..", "..", "..", ".."] for _ in range(6)]
    lines = []
    for cell in range(36):
        if cell not in CORNERS and cell not in free:
            drawn[cell // 6][cell % 6] = ".d"
            lines.append(f"enemy daemon {cell // 6},{cell % 6}")
    drawn[4][5], drawn[5][5] = ".@", "X."
    return "\n".join([*(" ".join(line) for line in reversed(drawn)), *lines])


def test_fewer_cells_than_blocks_wanted_all_free_ones_are_used(engine: Engine) -> None:
    for after in completed(engine, crowded([14, 21, 25])):
        assert set(blocks_of(after)) == {14, 21, 25}


def test_no_valid_layout_in_100_tries_no_blocks(engine: Engine) -> None:
    for after in completed(engine, crowded([1, 6])):  # would wall in (0,0)
        assert not blocks_of(after)
        assert after["cells"][14].keys() & {"credits", "energy"}


def test_new_games() -> None:
    corners, bonuses, cells = Counter[int](), Counter[tuple[int, ...]](), Counter[int]()
    for stream in range(200):
        data = Game.new(stream).to_dict()
        player = data["player"]
        corners[cell_of(player)] += 1
        bonuses[player["credits"], player["energy"], player["siphons"]] += 1
        cells[len(data["transmissions"])] += 1
        assert (player["hp"], player["attack"], player["score"]) == (3, 1, 0)
        assert (data["stage"], data["interval"], data["next_task"], data["turn"]) == (1, 12, 12, 0)
        assert (data["clock"], data["pending"], data["saved"], data["owned"]) == (0, 0, [], [])
        assert data["exit"] != [player["row"], player["col"]]
    assert set(corners) == set(CORNERS)
    assert set(bonuses) == {(10, 0, 0), (0, 11, 0), (0, 0, 1)}
    assert max(corners.values()) < 80
    assert max(bonuses.values()) < 100
    assert set(cells) == {1}


def test_a_game_is_its_stream_episode_and_actions() -> None:
    def played(stream: int, episode: int) -> Data:
        game = Game.new(stream, episode)
        for _ in range(8):
            if not game.state.over:
                game.step(game.valid_actions()[0])
        return game.to_dict()

    assert played(3, 1) == played(3, 1)
    assert played(3, 1) != played(3, 2)
    assert played(3, 1) != played(4, 1)
