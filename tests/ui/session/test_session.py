"""A session answers messages as the engine plays, and never tells what the player can't see."""

import json
import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import legal_states

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.opinion import Agent, RecurrentPolicy
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.undo import copy_state
from hackmatrix.game.rules.board import Content
from hackmatrix.game.rules.enemies import EnemyType
from hackmatrix.ui.session.position_data import facts_of, previews
from hackmatrix.ui.session.session import Session

UNIFORM = Agent("uniform", lambda record, mask: ([0.0] * len(mask), float(record[0])))
FIRST = Agent("first", lambda record, mask: ([-float(i) for i in range(len(mask))], None))  # noqa: ARG005


def watching(**options: Any) -> Session:
    return Session(GameId(7), {"uniform": lambda: UNIFORM, "first": lambda: FIRST}, **options)


def valid(answer: dict[str, Any]) -> list[int]:
    return [i for i, action in enumerate(answer["actions"]) if "why" not in action]


def played(session: Session, steps: int, seed: int = 0) -> dict[str, Any]:
    rng = random.Random(seed)
    answer = session.handle({"do": "hello"})
    for _ in range(steps):
        if answer["seen"]["over"]:
            break
        answer = session.handle({"do": "act", "action": rng.choice(valid(answer))})
    return answer


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(2))
def test_a_session_plays_the_engines_game(seed: int) -> None:
    session, game, rng = Session(GameId(seed)), Game.new(seed), random.Random(seed)
    answer = session.handle({"do": "hello"})
    total = 0.0
    while game.valid_actions():
        assert valid(answer) == game.valid_actions()
        action = rng.choice(game.valid_actions())
        answer = session.handle({"do": "act", "action": action})
        outcome = game.step(action)
        total += outcome.reward
        assert session.tree.state(session.at) == game.state or game.state.events
        assert answer["last"]["reward"] == outcome.reward
        assert sum(answer["last"]["parts"].values()) == pytest.approx(outcome.reward)
        assert json.loads(json.dumps(answer, allow_nan=False)) is not None
    assert answer["seen"]["over"] == "died"
    assert answer["added"][-1][5] == pytest.approx(total, abs=1e-3)
    assert "error" in session.handle({"do": "act", "action": 0})


def test_any_position_can_be_seen_again_and_another_action_branches_off() -> None:
    session = Session(GameId(7))
    last = played(session, 6)
    back = session.handle({"do": "go", "node": 3})
    assert back["at"] == 3
    taken = session.tree.line(6)[3]
    same = session.handle({"do": "act", "action": taken})
    assert same["at"] == 4
    session.handle({"do": "go", "node": 3})
    other = next(action for action in valid(back) if action != taken)
    branched = session.handle({"do": "act", "action": other})
    assert branched["at"] == 7
    assert session.tree.nodes[3].children == [4, 7]
    assert session.handle({"do": "go", "node": 6})["board"] == last["board"]


def test_a_saved_line_opens_again_at_any_step() -> None:
    session = Session(GameId(7, 3))
    last = played(session, 20)
    session.handle({"do": "go", "node": 5})  # what is saved is the line to its end
    replay = json.loads(json.dumps(session.handle({"do": "save"})))["replay"]
    other = Session(GameId(1))
    opened = other.handle({"do": "load", "replay": replay})
    assert (opened["game"], opened["board"]) == ("7.3", last["board"])
    assert opened["last"]["events"] == last["last"]["events"]
    assert other.handle({"do": "load", "replay": replay, "step": 2})["at"] == 2


def test_a_game_is_resumed_with_all_its_variations() -> None:
    session = Session(GameId(7, 3))
    played(session, 40)
    rng = random.Random(0)
    for _ in range(30):
        session.handle({"do": "go", "node": rng.randrange(len(session.tree.nodes))})
        if choices := session.tree.valid_actions(session.at):
            session.handle({"do": "act", "action": rng.choice(choices)})
    nodes = [[node.parent, node.action, node.by] for node in session.tree.nodes[1:]]
    shown = session.handle({"do": "go", "node": 20})
    other = Session(GameId(1))
    message = {"do": "resume", "seed": "7.3", "nodes": nodes, "at": 20}
    resumed = other.handle(json.loads(json.dumps(message)))
    assert (resumed["game"], resumed["board"]) == ("7.3", shown["board"])
    assert resumed["nodes"] == session.handle({"do": "hello"})["nodes"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": None},
        {"nodes": [[1, 0, "you"]]},
        {"nodes": [[0, 27, "you"]]},
        {"nodes": [[0, True, "you"]]},
        {"nodes": [[0, 0, 0]]},
        {"nodes": [[0, 0, "x" * 201]]},
        {"nodes": [[0, 0]]},
        {"nodes": [[0, 1, "you"], [0, 1, "you"]]},  # a move twice
        {"nodes": [0]},
        {"nodes": [], "at": 1},
        {"seed": 7},
        {"seed": "x"},
    ],
    ids=str,
)
def test_a_tree_that_is_none_is_refused_and_the_game_stays(wrong: dict[str, Any]) -> None:
    session = Session(GameId(7))
    before = played(session, 3)
    told = session.handle({"do": "resume", "seed": "8", "nodes": [], "at": 0} | wrong)
    assert list(told) == ["error"]
    assert session.handle({"do": "go", "node": 3})["board"] == before["board"]


def test_an_agent_plays_the_same_game_again_and_hands_over() -> None:
    session = watching()
    first = session.handle({"do": "agent", "steps": 100})
    assert len(first["added"]) == len({node[0] for node in first["added"]})
    session.handle({"do": "new", "seed": "7"})
    assert session.handle({"do": "agent", "steps": 100})["added"] == first["added"]
    session.handle({"do": "go", "node": 1})
    mine = session.handle({"do": "act", "action": valid(session.handle({"do": "hello"}))[0]})
    assert mine["last"]["by"] == "you"
    assert session.handle({"do": "agent"})["last"]["by"] == "uniform"


def test_probabilities_are_of_valid_actions_alone() -> None:
    answer = watching().handle({"do": "hello"})
    probabilities = answer["agent"]["probabilities"]
    assert [i for i, p in enumerate(probabilities) if p] == valid(answer)
    assert sum(probabilities) == pytest.approx(1, abs=1e-4)
    assert answer["agent"]["suggests"] in valid(answer)


def test_the_controls_go_to_another_agent_which_judges_the_line_anew() -> None:
    session = watching(greedy=True)
    session.handle({"do": "agent", "steps": 3})
    answer = session.handle({"do": "control", "agent": "first"})
    assert answer["agent"]["suggests"] == valid(answer)[0]
    assert [entry[0] for entry in answer["opinions"]] == [0, 1, 2, 3]
    replay = session.handle({"do": "save"})["replay"]
    loaded = session.handle({"do": "load", "replay": replay, "step": 1})
    assert [entry[0] for entry in loaded["opinions"]] == [0, 1, 2, 3]
    names = [entry[0] for entry in session.handle({"do": "others"})["others"]]
    assert names == ["uniform", "first"]


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        {},
        {"do": "nothing"},
        {"do": []},
        {"do": {}},
        {"do": "act"},
        {"do": "act", "action": 28},
        {"do": "act", "action": True},
        {"do": "act", "action": "0"},
        {"do": "act", "action": 27},
        {"do": "go", "node": 1},
        {"do": "go", "node": -1},
        {"do": "new", "seed": "x"},
        {"do": "new", "seed": "99999999999"},
        {"do": "new", "seed": {}},
        {"do": "agent"},
        {"do": "control", "agent": "x"},
        {"do": "control", "agent": []},
        {"do": "hidden", "show": True},
        {"do": "load"},
        {"do": "load", "replay": {"format": "hackmatrix-replay"}},
        {"do": "load", "replay": Replay(GameId(7), (4, 27)).as_json()},
    ],
)
def test_bad_messages_are_answered_in_one_line_and_change_nothing(message: Any) -> None:
    session = Session(GameId(7))
    before = session.handle({"do": "hello"})
    answer = session.handle(message)
    assert list(answer) == ["error"]
    assert "\n" not in answer["error"]
    assert session.handle({"do": "hello"}) == before


def hidden_changed(state: State, rng: random.Random) -> State:
    """The same state with everything changed that the player does not see."""
    changed = copy_state(state)
    for cell in changed.cells:
        if cell.content == Content.QUESTION and not cell.siphoned:
            cell.points, cell.program = rng.randrange(10), rng.randrange(23)
            cell.spawn, cell.holds_data = rng.randrange(1, 9), rng.random() < 0.5
            cell.points *= cell.holds_data
            cell.program *= not cell.holds_data
        if cell.is_block and not cell.siphoned:
            cell.credits, cell.energy = rng.randrange(4), 0
    for piece in changed.transmissions:
        if not changed.show:
            piece.type = rng.choice(list(EnemyType))
        piece.from_schedule = piece.from_siphon = rng.random() < 0.5
    out_of_sight = [cell for cell in range(36) if not changed.in_line(cell)]
    for enemy in changed.enemies:
        enemy.from_schedule = rng.random() < 0.5
        if not changed.sees(enemy):
            enemy.cell, enemy.hp = rng.choice(out_of_sight), rng.choice([1, 2])
            enemy.disabled, enemy.stunned = rng.randrange(2), rng.random() < 0.5
    changed.dice.stream += 1
    return changed


@given(legal_states(), st.integers(0, 2**32))
@settings(max_examples=30)
def test_what_is_hidden_changes_nothing_that_is_sent(data: dict[str, Any], seed: int) -> None:
    state = Game.from_dict(data).state
    other = hidden_changed(state, random.Random(seed))
    assume(valid_actions(state) == valid_actions(other))
    assert facts_of(state) == facts_of(other)


def test_what_is_hidden_is_only_shown_to_who_watches_and_asks() -> None:
    session = watching()
    for seed in range(40):  # until a game has a question block or a transmission
        session.handle({"do": "new", "seed": str(seed)})
        plain = session.handle({"do": "hidden", "show": False})["board"]
        shown = session.handle({"do": "hidden", "show": True})["board"]
        assert plain != shown
        assert "hidden" not in json.dumps(plain)
        assert "hidden" in json.dumps(shown)


@pytest.mark.parametrize("seed", range(20, 24))
def test_events_of_cryptogs_out_of_sight_are_not_sent(seed: int) -> None:
    session = Session(GameId(seed))
    rng = random.Random(seed)
    answer = session.handle({"do": "hello"})
    while not answer["seen"]["over"]:
        was = answer["seen"]["player"]
        answer = session.handle({"do": "act", "action": rng.choice(valid(answer))})
        now = answer["seen"]["player"]
        rows, cols = {was["row"], now["row"]}, {was["col"], now["col"]}
        for event in answer["last"]["events"]:
            for cell in (event.get("cell"), event.get("to")):
                if event.get("piece") == "cryptog" and cell is not None:
                    assert cell // 6 in rows or cell % 6 in cols


@given(legal_states(), st.integers(0, 27))
@settings(max_examples=30)
def test_nobody_is_hit_more_often_than_foreseen(data: dict[str, Any], pick: int) -> None:
    state = Game.from_dict(data).state
    state.show = True  # nobody hides
    state.player.hp = 3
    found = previews(state)
    actions = [a for a, entry in enumerate(found) if "hits" in entry]
    assume(actions)
    action = actions[pick % len(actions)]
    outcome = Game(state).step(action)
    hits = sum(event.kind == "hit" for event in outcome.events)
    assert hits <= found[action]["hits"]


def test_an_agent_with_memory_remembers_the_line_that_led_to_a_position() -> None:
    asked = []

    def step(record: bytes, memory: tuple[bytes, ...] | None) -> Any:
        asked.append(record)
        return [0.0] * 28, float(len(memory or ())), (*(memory or ()), record)

    agent = Agent("memory", RecurrentPolicy(step))
    session = Session(GameId(7), {"uniform": lambda: UNIFORM, "memory": lambda: agent})
    played(session, 6)
    assert asked == []
    assert session.handle({"do": "control", "agent": "memory"})["agent"]["value"] == 6
    assert len(asked) == 7  # each position once
    back = session.handle({"do": "go", "node": 2})
    assert back["agent"]["value"] == 2
    other = next(a for a in valid(back) if a != session.tree.nodes[3].action)
    assert session.handle({"do": "act", "action": other})["agent"]["value"] == 3
    before, here = (session.remembered["memory", node].memory for node in (2, session.at))
    assert here[:3] == before
    assert len(here) == 4
    assert len(asked) == 8
    assert session.handle({"do": "others"})["others"][1][3] == 3
    session.handle({"do": "new", "seed": "9"})
    assert session.handle({"do": "hello"})["agent"]["value"] == 0


def test_the_end_says_who_played() -> None:
    walker = Session(GameId(3), cast(resolve("exit")))
    walker.handle({"do": "agent", "steps": 100})
    assert walker.handle({"do": "hello"})["ending"] == "The agent died."
    actions = walker.tree.line(walker.at)
    watched = Session(agents=cast(resolve("exit")), start=Replay(GameId(3), actions))
    end = watched.handle({"do": "hello"})
    assert end["ending"] == "The player died."
    assert end["hits"] >= 3  # it may have found back hp
    mine = Session(GameId(3), playing=True)
    for action in actions:
        end = mine.handle({"do": "act", "action": action})
    assert end["ending"] == "You died."
