"""`setState`: every field, its default, and every way to be refused by name."""

from typing import Any

import pytest
from bridge_client import Client, Json

from hackmatrix.game.engine import Game
from hackmatrix.game.rules.actions import ACTION_NAMES
from hackmatrix.integrations.process.set_state import PROGRAM_BY_NAME


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


EVERYTHING: Json = {
    "player": {
        "row": 0,
        "col": 1,
        "hp": 2,
        "credits": 7,
        "energy": 8,
        "dataSiphons": 9,
        "attackDamage": 4,
        "score": 11,
    },
    "enemies": [
        {"type": "daemon", "row": 2, "col": 2, "hp": 1, "stunned": True},
        {"type": "virus", "row": 1, "col": 1, "hp": 2, "spawnedFromSiphon": True},
        {"type": "cryptog", "row": 2, "col": 2, "hp": 1, "isFromScheduledTask": True},
        {"type": "glitch", "row": 0, "col": 1, "hp": 1},
    ],
    "transmissions": [
        {"row": 5, "col": 0, "turnsRemaining": 3, "enemyType": "glitch"},
        {"row": 0, "col": 1, "turnsRemaining": 0, "enemyType": "daemon"},
    ],
    "blocks": [
        {"row": 1, "col": 1, "type": "data"},
        {"row": 1, "col": 2, "type": "data", "points": 9},
        {"row": 1, "col": 3, "type": "data", "points": 0, "spawnCount": 4, "siphoned": True},
        {"row": 1, "col": 4, "type": "program", "programType": "crash"},
        {"row": 1, "col": 5, "type": "program", "programType": "HACK", "spawnCount": 0},
        {"row": 2, "col": 5, "type": "program", "programType": "push", "programActionIndex": 0},
    ],
    "resources": [
        {"row": 3, "col": 0, "credits": 3},
        {"row": 3, "col": 1, "energy": 2, "credits": 0},
        {"row": 3, "col": 2, "dataSiphon": True, "energy": 1},
        {"row": 1, "col": 1, "credits": 1},
        {"row": 5, "col": 5, "energy": 1},
        {"row": 3, "col": 3, "dataSiphon": True},
        {"row": 3, "col": 3, "credits": 2, "energy": 3},
        {"row": 3, "col": 0, "credits": 0, "energy": 0, "dataSiphon": False},
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


@pytest.mark.parametrize(
    ("name", "index"),
    [
        *((name.lower(), 5 + i) for i, name in enumerate(ACTION_NAMES[5:])),
        ("PUSH", 5),
        ("dbom", 21),
        ("d_bomb", 21),
        ("antiv", 23),
        ("anti_v", 23),
        ("siphplus", 16),
        ("siph_plus", 16),
        ("atkplus", 26),
        ("atk_plus", 26),
    ],
)
def test_program_names(client: Client, name: str, index: int) -> None:
    block = {"row": 0, "col": 1, "type": "program", "programType": name}
    shown = client.set_state(0, 0, blocks=[block])["observation"]["cells"][0][1]["block"]
    assert shown["programActionIndex"] == index
    assert shown["programType"] == ACTION_NAMES[index].lower()


def test_every_program_has_a_name() -> None:
    assert set(PROGRAM_BY_NAME.values()) == set(range(23))


BOARD_AFTER = [
    ("no entry", {}, {}),
    (
        "zeros",
        {"resources": [{"row": 1, "col": 1, "credits": 0, "energy": 0, "dataSiphon": False}]},
        {},
    ),
    (
        "a siphon with a resource",
        {"resources": [{"row": 1, "col": 1, "credits": 9, "energy": 1, "dataSiphon": True}]},
        {"isDataSiphon": True, "credits": 9},
    ),
    (
        "credits before energy",
        {"resources": [{"row": 1, "col": 1, "credits": 32767, "energy": 9}]},
        {"credits": 32767},
    ),
    (
        "the last resource counts",
        {"resources": [{"row": 1, "col": 1, **it} for it in ({"credits": 5}, {"energy": 400})]},
        {"energy": 400},
    ),
    (
        "the last block counts",
        {
            "blocks": [
                {"row": 1, "col": 1, "type": "program", "programType": "push"},
                {"row": 1, "col": 1, "type": "Data", "points": 32767, "spawnCount": 300},
            ]
        },
        {
            "block": {
                "blockType": "data",
                "points": 32767,
                "transmissionSpawnCount": 300,
                "isSiphoned": False,
            }
        },
    ),
    (
        "a siphon replaces a block",
        {
            "blocks": [{"row": 1, "col": 1, "type": "data", "siphoned": True}],
            "resources": [{"row": 1, "col": 1, "dataSiphon": True}],
        },
        {"isDataSiphon": True},
    ),
    (
        "a program block without a program is none",
        {"blocks": [{"row": 1, "col": 1, "type": "program", "programActionIndex": 7}]},
        {},
    ),
    (
        "hp above the type's",
        {"enemies": [{"type": "Virus", "row": 1, "col": 1, "hp": 32767}]},
        {
            "enemy": {
                "type": "virus",
                "hp": 32767,
                "isStunned": False,
                "spawnedFromSiphon": False,
            }
        },
    ),
]


@pytest.mark.parametrize(
    ("state", "shown"), [it[1:] for it in BOARD_AFTER], ids=[it[0] for it in BOARD_AFTER]
)
def test_what_a_cell_shows(client: Client, state: Json, shown: Json) -> None:
    nothing = {"isDataSiphon": False, "isExit": False, "siphonCenter": False}
    cells = client.set_state(0, 0, **state)["observation"]["cells"]
    assert cells[1][1] == {"row": 1, "col": 1, **nothing, **shown}


def test_a_position_of_play_comes_back_as_it_was_shown(client: Client) -> None:
    """A start as the player sees it: siphons with the resources that are dealt with them."""
    shown = client.ask("reset", seed=7)["observation"]["cells"]
    seen = [cell for row in shown for cell in row if not cell["isExit"]]
    resources = [
        {"row": cell["row"], "col": cell["col"], "dataSiphon": cell["isDataSiphon"], **found}
        for cell in seen
        if (found := {name: cell[name] for name in ("credits", "energy") if name in cell})
    ]
    assert any(each["dataSiphon"] for each in resources)
    again = client.set_state(0, 0, resources=resources)["observation"]["cells"]
    for each in resources:
        cell = again[each["row"]][each["col"]]
        assert cell["isDataSiphon"] == each["dataSiphon"]
        assert [cell.get(name) for name in ("credits", "energy")] == [
            each.get(name) for name in ("credits", "energy")
        ]


def test_the_exit_replaces_what_is_there(client: Client) -> None:
    block = {"row": 5, "col": 5, "type": "data"}
    siphon = {"row": 5, "col": 5, "dataSiphon": True}
    for state in ({"blocks": [block]}, {"resources": [siphon]}):
        cell = client.set_state(0, 0, **state)["observation"]["cells"][5][5]
        assert cell["isExit"]
        assert "block" not in cell
        assert not cell["isDataSiphon"]


def test_a_position_past_what_play_reaches_can_be_played(client: Client) -> None:
    block = {"row": 0, "col": 1, "type": "data", "points": 32767, "spawnCount": 32767}
    enemies = [{"type": "virus", "row": 5, "col": col, "hp": 32767} for col in range(5)]
    coming = [
        {"row": r, "col": c, "turnsRemaining": 0, "enemyType": "VIRUS"}
        for r in range(6)
        for c in range(6)
        if (r, c) != (0, 1)
    ]
    player = {"dataSiphons": 32767, "score": 32767, "hp": 3, "energy": 32767, "attackDamage": 0}
    client.set_state(
        0,
        0,
        player={**player, "credits": 32767},
        blocks=[block],
        enemies=enemies,
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


ENEMY = {"type": "virus", "row": 1, "col": 1, "hp": 2}
COMING = {"row": 1, "col": 1, "turnsRemaining": 1, "enemyType": "virus"}
DATA = {"row": 1, "col": 1, "type": "data"}
PROGRAM = {"row": 1, "col": 1, "type": "program", "programType": "push"}
LEFT_OUT = object()


def player(**fields: Any) -> Json:
    return {"player": {"row": 0, "col": 0, **fields}}


def one(name: str, item: Json, **fields: Any) -> Json:
    """A list of one item with some fields changed or left out."""
    return {name: [{k: v for k, v in {**item, **fields}.items() if v is not LEFT_OUT}]}


REFUSED = [
    ({"player": LEFT_OUT}, "state.player: missing"),
    ({"player": None}, "state.player: missing"),
    ({"player": []}, "state.player: expected an object, got a list of 0"),
    ({"player": {"row": 0}}, "state.player.col: missing"),
    (player(row=6), "state.player.row: expected 0..5, got 6"),
    (player(col=-1), "state.player.col: expected 0..5, got -1"),
    (player(row=True), "state.player.row: expected 0..5, got true"),
    (player(hp=-1), "state.player.hp: expected 0..3, got -1"),
    (player(hp=4), "state.player.hp: expected 0..3, got 4"),
    (player(hp=2.5), "state.player.hp: expected 0..3, got 2.5"),
    (player(credits=-1), "state.player.credits: expected 0..32767, got -1"),
    (player(energy=32768), "state.player.energy: expected 0..32767, got 32768"),
    (player(dataSiphons="1"), 'state.player.dataSiphons: expected 0..32767, got "1"'),
    (player(attackDamage=-1), "state.player.attackDamage: expected 0..32767, got -1"),
    (player(score=10**40), "state.player.score: expected 0..32767, got " + "1" + 36 * "0" + "..."),
    ({"stage": 0}, "state.stage: expected 1..8, got 0"),
    ({"stage": 9}, "state.stage: expected 1..8, got 9"),
    ({"turn": -1}, "state.turn: expected 0..32767, got -1"),
    ({"showActivated": 1}, "state.showActivated: expected true or false, got 1"),
    (
        {"scheduledTasksDisabled": "yes"},
        'state.scheduledTasksDisabled: expected true or false, got "yes"',
    ),
    ({"enemies": {}}, "state.enemies: expected a list of 0..32, got an object"),
    ({"enemies": [ENEMY] * 33}, "state.enemies: expected a list of 0..32, got a list of 33"),
    ({"enemies": [7]}, "state.enemies[0]: expected an object, got 7"),
    (
        one("enemies", ENEMY, type="dog"),
        'state.enemies[0].type: expected one of virus, daemon, glitch, cryptog, got "dog"',
    ),
    (one("enemies", ENEMY, type=LEFT_OUT), "state.enemies[0].type: missing"),
    (one("enemies", ENEMY, hp=LEFT_OUT), "state.enemies[0].hp: missing"),
    (one("enemies", ENEMY, hp=32768), "state.enemies[0].hp: expected 1..32767, got 32768"),
    (one("enemies", ENEMY, hp=0), "state.enemies[0].hp: expected 1..32767, got 0"),
    (one("enemies", ENEMY, row=6), "state.enemies[0].row: expected 0..5, got 6"),
    (one("enemies", ENEMY, stunned=0), "state.enemies[0].stunned: expected true or false, got 0"),
    (one("transmissions", COMING, turnsRemaining=LEFT_OUT), "turnsRemaining: missing"),
    (one("transmissions", COMING, turnsRemaining=-1), "turnsRemaining: expected 0..32767, got -1"),
    (one("transmissions", COMING, enemyType=LEFT_OUT), "enemyType: missing"),
    (one("transmissions", COMING, enemyType="dog"), "enemyType: expected one of virus, daemon, "),
    (
        {"transmissions": [COMING, COMING]},
        "state.transmissions[1]: there is a transmission on this cell already",
    ),
    (
        {"transmissions": [COMING], "blocks": [DATA]},
        "state.transmissions[0]: a transmission cannot stand on a block",
    ),
    (
        one("blocks", DATA, type="question"),
        'state.blocks[0].type: expected one of data, program, got "question"',
    ),
    (one("blocks", DATA, type=LEFT_OUT), "state.blocks[0].type: missing"),
    (one("blocks", DATA, points=-1), "state.blocks[0].points: expected 0..32767, got -1"),
    (one("blocks", DATA, spawnCount=32768), "spawnCount: expected 0..32767, got 32768"),
    (one("blocks", DATA, row=6), "state.blocks[0].row: expected 0..5, got 6"),
    (
        one("blocks", DATA, siphoned="no"),
        'state.blocks[0].siphoned: expected true or false, got "no"',
    ),
    (
        one("blocks", PROGRAM, programType="pusch"),
        'state.blocks[0].programType: expected the name of a program, got "pusch"',
    ),
    (one("blocks", PROGRAM, programType=5), "programType: expected the name of a program, got 5"),
    (
        one("resources", {"row": 0, "col": 0}, credits=32768),
        "credits: expected 0..32767, got 32768",
    ),
    (one("resources", {"row": 0, "col": 0}, energy=-1), "energy: expected 0..32767, got -1"),
    (one("resources", {"row": 0, "col": 0}, dataSiphon=1), "expected true or false, got 1"),
    ({"ownedPrograms": [4]}, "state.ownedPrograms[0]: expected 5..27"),
    ({"ownedPrograms": [28]}, "state.ownedPrograms[0]: expected 5..27"),
    ({"ownedPrograms": [5.5]}, "state.ownedPrograms[0]: expected 5..27"),
    ({"ownedPrograms": ["push"]}, "state.ownedPrograms[0]: expected 5..27"),
]


def test_refused(client: Client) -> None:
    before = client.state()
    for change, error in REFUSED:
        state = {k: v for k, v in {**player(), **change}.items() if v is not LEFT_OUT}
        answer = client.ask("setState", state=state)
        assert list(answer) == ["error"], error
        assert error in answer["error"]
        assert client.state() == before, error
