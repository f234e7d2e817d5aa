"""`setState`: every field and its default. `protocol.txt` has the ways to be refused."""

from typing import Any

import pytest
from bridge_client import Client, Json

from hackmatrix.game.engine import Game
from hackmatrix.game.rules.actions import ACTION_NAMES


@pytest.fixture
def client() -> Client:
    client = Client()
    client.ask("reset", seed=0)
    return client


def same_as(client: Client, text: str) -> bool:
    """Whether the state is that of the text, dice apart."""
    dice = dict.fromkeys(("stream", "episode", "clock"), 0)
    return bool({**client.state(), **dice} == Game.from_text(text).to_dict())


def test_what_is_left_out_is_as_in_a_new_game(client: Client) -> None:
    client.set_state(2, 3)
    assert same_as(
        client,
        """
        .. .. .. .. .. X.
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        .. .. .. .@ .. ..
        .. .. .. .. .. ..
        .. .. .. .. .. ..
        stage 1 interval 12 next_task 12 pending 0 turn 0 atk_uses 0
        player hp 3 credits 0 energy 0 siphons 0 attack 1 score 0
        """,
    )


def test_null_is_left_out_too(client: Client) -> None:
    client.set_state(2, 3)
    expected = client.state()
    names = ("turn", "enemies", "transmissions", "blocks", "resources", "ownedPrograms")
    client.set_state(2, 3, player={"hp": None}, **dict.fromkeys(names))
    assert client.state() == expected


def at(row: int, col: int, **fields: Any) -> Json:
    return {"row": row, "col": col, **fields}


EVERYTHING: Json = {
    "player": at(0, 1, hp=2, credits=7, energy=8, dataSiphons=9, attackDamage=4, score=11),
    "enemies": [
        at(2, 2, type="daemon", hp=1, stunned=True),
        at(1, 1, type="virus", hp=2, spawnedFromSiphon=True),
        at(2, 2, type="cryptog", hp=1, isFromScheduledTask=True),
        at(0, 1, type="glitch", hp=1),
    ],
    "transmissions": [
        at(5, 0, turnsRemaining=3, enemyType="glitch"),
        at(0, 1, turnsRemaining=0, enemyType="daemon"),
    ],
    "blocks": [
        at(1, 1, type="data"),
        at(1, 2, type="data", points=9),
        at(1, 3, type="data", points=0, spawnCount=4, siphoned=True),
        at(1, 4, type="program", programType="crash"),
        at(1, 5, type="program", programType="HACK", spawnCount=0),
        at(2, 5, type="program", programType="push", programActionIndex=0),
    ],
    "resources": [
        at(3, 0, credits=3),
        at(3, 1, energy=2, credits=0),
        at(3, 2, dataSiphon=True, energy=1),
        at(1, 1, credits=1),
        at(5, 5, energy=1),
        at(3, 3, dataSiphon=True),
        at(3, 3, credits=2, energy=3),
        at(3, 0, credits=0, energy=0, dataSiphon=False),
    ],
    "ownedPrograms": [27, 5, 10],
    "stage": 6,
    "turn": 20,
    "showActivated": True,
    "scheduledTasksDisabled": True,
}


def test_everything(client: Client) -> None:
    answer = client.ask("setState", state=EVERYTHING)
    assert list(answer) == ["observation"]
    assert same_as(
        client,
        """
        .+ .. .. .. .. X.
        .. .. .. .. .. ..
        .. .. s. .. .. ..
        .. .. .d .. .. P.
        .. Dv D. D. P. P.
        .. .@ .. .. .. ..
        stage 6 turn 20
        flags show calm
        player hp 2 credits 7 energy 8 siphons 9 attack 4 score 11
        owned HACK PUSH WAIT
        cell 1,1 credits 1 points 5 spawn 5
        cell 1,2 points 9 spawn 9
        cell 1,3 siphoned spawn 4
        cell 1,4 program CRASH spawn 2
        cell 1,5 program HACK spawn 0
        cell 2,5 program PUSH spawn 2
        cell 3,0 credits 3
        cell 3,1 energy 2
        cell 3,2 energy 1
        cell 3,3 credits 2
        cell 5,5 energy 1
        enemy daemon 2,2 hp 1 stunned
        enemy virus 1,1 hp 2 from_siphon
        enemy cryptog 2,2 hp 1 from_schedule last 2,2
        enemy glitch 0,1 hp 1
        transmission glitch 5,0 turns 3
        transmission daemon 0,1 turns 0
        """,
    )


def test_nothing_of_the_game_before_stays(client: Client) -> None:
    client.ask("setState", state=EVERYTHING)
    client.ask("step", actionIndex=10)
    client.set_state(2, 3)
    expected = client.state()
    other = Client()
    other.set_state(2, 3)
    dice = {name: expected[name] for name in ("stream", "episode", "clock")}
    assert {**other.state(), **dice} == expected
    assert client.state()["saved"] == []


OTHER_NAMES = {
    **dict.fromkeys(("dbom", "d_bomb"), "D_BOM"),
    **dict.fromkeys(("antiv", "anti_v"), "ANTI-V"),
    **dict.fromkeys(("siphplus", "siph_plus"), "SIPH+"),
    **dict.fromkeys(("atkplus", "atk_plus"), "ATK+"),
}


def test_program_names(client: Client) -> None:
    names = {name.lower(): name for name in ACTION_NAMES[5:]} | OTHER_NAMES | {"PUSH": "PUSH"}
    for given, name in names.items():
        block = {"row": 0, "col": 1, "type": "program", "programType": given}
        shown = client.set_state(0, 0, blocks=[block])["observation"]["cells"][0][1]["block"]
        assert shown["programActionIndex"] == ACTION_NAMES.index(name)
        assert shown["programType"] == name.lower()


def test_a_position_past_what_play_reaches_can_be_played(client: Client) -> None:
    block = at(0, 1, type="data", points=32767, spawnCount=32767)
    coming = [at(*divmod(i, 6), turnsRemaining=0, enemyType="VIRUS") for i in range(36) if i != 1]
    player = {"dataSiphons": 32767, "score": 32767, "hp": 3, "energy": 32767, "attackDamage": 0}
    client.set_state(
        0,
        0,
        player={**player, "credits": 32767},
        blocks=[block],
        enemies=[at(5, col, type="virus", hp=32767) for col in range(5)],
        transmissions=coming,
        ownedPrograms=[*range(5, 28), 5],
    )
    used = set()
    for _ in range(60):
        valid = client.ask("getValidActions")["validActions"]
        if not valid:
            break
        action = min(valid, key=lambda action: (action in used, -action))
        used.add(action)
        assert "observation" in client.ask("step", actionIndex=action)
    assert len(used) > 10
