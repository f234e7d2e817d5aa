"""One known answer for each command, and what is answered to requests that cannot be."""

import pytest
from bridge_client import Client, Json, exactly

from hackmatrix.game.engine import Game

PARTS = [
    "stage",
    "score",
    "kills",
    "dataSiphon",
    "distance",
    "victory",
    "death",
    "resourceGain",
    "resourceHolding",
    "damagePenalty",
    "hpRecovery",
    "siphonQuality",
    "programWaste",
    "siphonDeathPenalty",
    "stepPenalty",
]
UP, DOWN, LEFT, RIGHT, SIPHON = range(5)
WAIT, STEP = 10, 15


@pytest.fixture
def client() -> Client:
    return Client()


def breakdown(**parts: float) -> Json:
    return {name: parts.get(name, 0.0) for name in PARTS}


def test_get_action_space(client: Client) -> None:
    assert exactly(client.ask("getActionSpace")) == exactly({"actionSpaceSize": 28})


def test_get_observation_space(client: Client) -> None:
    expected = {"gridSize": 6, "playerFeatures": 10, "cellFeatures": 42}
    assert exactly(client.ask("getObservationSpace")) == exactly(expected)


def test_get_valid_actions(client: Client) -> None:
    client.set_state(0, 0, ownedPrograms=[15, 10], player={"energy": 3, "dataSiphons": 1})
    expected = {"validActions": [UP, RIGHT, SIPHON, WAIT, STEP]}
    assert exactly(client.ask("getValidActions")) == exactly(expected)


def test_get_internal_state(client: Client) -> None:
    virus = {"type": "virus", "row": 3, "col": 4, "hp": 1, "isFromScheduledTask": True}
    daemon = {"type": "daemon", "row": 0, "col": 5, "hp": 3, "stunned": True}
    client.set_state(0, 0, turn=7, enemies=[virus, {**daemon, "spawnedFromSiphon": True}])
    expected = {
        "scheduledTaskInterval": 12,
        "nextScheduledTaskTurn": 12,
        "pendingSiphonTransmissions": 0,
        "turnCount": 7,
        "enemies": [
            {
                "row": 3,
                "col": 4,
                "type": "virus",
                "hp": 1,
                "disabledTurns": 0,
                "isStunned": False,
                "spawnedFromSiphon": False,
                "isFromScheduledTask": True,
            },
            {
                "row": 0,
                "col": 5,
                "type": "daemon",
                "hp": 3,
                "disabledTurns": 0,
                "isStunned": True,
                "spawnedFromSiphon": True,
                "isFromScheduledTask": False,
            },
        ],
    }
    assert exactly(client.ask("getInternalState")) == exactly(expected)


def test_internal_state_follows_the_game(client: Client) -> None:
    block = {"type": "data", "row": 1, "col": 0, "points": 6}
    player = {"dataSiphons": 1, "energy": 3}
    transmission = {"row": 5, "col": 3, "turnsRemaining": 1, "enemyType": "daemon"}
    client.set_state(
        0, 0, blocks=[block], ownedPrograms=[STEP], player=player, transmissions=[transmission]
    )
    client.ask("step", actionIndex=STEP)
    client.ask("step", actionIndex=SIPHON)
    internal = client.ask("getInternalState")
    assert internal == {
        "scheduledTaskInterval": 11,
        "nextScheduledTaskTurn": 17,
        "pendingSiphonTransmissions": 6,
        "turnCount": 0,
        "enemies": [],
    }
    client.ask("step", actionIndex=RIGHT)
    internal = client.ask("getInternalState")
    assert internal["pendingSiphonTransmissions"] == 0
    assert internal["turnCount"] == 1
    assert [enemy["type"] for enemy in internal["enemies"]] == ["daemon"]


def test_step(client: Client) -> None:
    client.set_state(0, 0, resources=[{"row": 0, "col": 1, "dataSiphon": True}])
    answer = client.ask("step", actionIndex=RIGHT)
    observation = answer.pop("observation")
    assert observation["playerCol"] == 1
    assert observation["dataSiphons"] == 1
    assert observation["turn"] == 1
    expected = {
        "reward": 1.04,
        "done": False,
        "info": {
            "reward_breakdown": breakdown(stepPenalty=-0.01, dataSiphon=1.0, distance=0.05),
        },
    }
    assert exactly(answer) == exactly(expected)


def test_step_that_completes_a_stage(client: Client) -> None:
    client.set_state(5, 4, stage=2, player={"hp": 2, "credits": 3})
    answer = client.ask("step", actionIndex=RIGHT)
    observation = answer.pop("observation")
    assert (observation["stage"], observation["playerHP"]) == (3, 3)
    parts = breakdown(
        stage=2.0, stepPenalty=-0.01, distance=0.05, hpRecovery=1.0, resourceHolding=0.03
    )
    expected = {
        "reward": 3.07,
        "done": False,
        "info": {"stage_complete": True, "reward_breakdown": parts},
    }
    assert exactly(answer) == exactly(expected)


def test_step_that_wins(client: Client) -> None:
    client.set_state(5, 4, stage=8, player={"score": 2})
    answer = client.ask("step", actionIndex=RIGHT)
    assert answer.pop("observation")["stage"] == 8
    parts = breakdown(stage=100.0, victory=700.0, stepPenalty=-0.01, distance=0.05)
    expected = {
        "reward": 800.04,
        "done": True,
        "info": {"stage_complete": True, "reward_breakdown": parts},
    }
    assert exactly(answer) == exactly(expected)


def test_step_that_kills_the_player(client: Client) -> None:
    daemon = {"type": "daemon", "row": 0, "col": 1, "hp": 3, "spawnedFromSiphon": True}
    client.set_state(
        0, 0, stage=3, enemies=[daemon], ownedPrograms=[10], player={"hp": 1, "energy": 1}
    )
    answer = client.ask("step", actionIndex=WAIT)
    assert answer.pop("observation")["playerHP"] == 0
    parts = breakdown(
        stepPenalty=-0.01,
        death=-1.5,
        damagePenalty=-1.0,
        resourceGain=-0.05,
        siphonDeathPenalty=-10.0,
    )
    expected = {"reward": -12.56, "done": True, "info": {"death": True, "reward_breakdown": parts}}
    assert exactly(answer) == exactly(expected)


INVALID: Json = {
    "reward": 0.0,
    "done": True,
    "info": {"invalid_action": True, "reward_breakdown": breakdown()},
}


def test_invalid_action_ends_the_game(client: Client) -> None:
    observation = client.set_state(0, 0)["observation"]
    answer = client.ask("step", actionIndex=DOWN)
    assert exactly(answer) == exactly({"observation": observation, **INVALID})
    assert client.ask("getValidActions") == {"validActions": []}


@pytest.mark.parametrize(("action", "flag"), [(RIGHT, "stage_complete"), (WAIT, "death")])
def test_after_the_end_nothing_changes(client: Client, action: int, flag: str) -> None:
    daemon = {"type": "daemon", "row": 5, "col": 3, "hp": 3}
    player = {"hp": 1, "energy": 1}
    client.set_state(5, 4, stage=8, enemies=[daemon], player=player, ownedPrograms=[WAIT])
    last = client.ask("step", actionIndex=action)
    assert (last["done"], last["info"].get(flag)) == (True, True)
    before = client.state()
    for again in (0, 27):
        answer = client.ask("step", actionIndex=again)
        assert exactly(answer) == exactly({**INVALID, "observation": last["observation"]})
    assert client.state() == before
    assert "error" in client.ask("step", actionIndex=28)


def test_reset_with_a_seed_is_that_stream(client: Client) -> None:
    first = client.ask("reset", seed=11)
    assert first["observation"]["playerHP"] == 3
    assert client.state() == Game.new(11).to_dict()
    client.ask("step", actionIndex=0)
    assert client.ask("reset", seed=11) == first
    assert client.ask("reset", seed=12) != first


def test_reset_without_a_seed_is_a_new_stream(client: Client) -> None:
    streams = set()
    for request in ({}, {"seed": None}) * 20:
        assert list(client.ask("reset", **request)) == ["observation"]
        streams.add(client.state()["stream"])
    assert len(streams) == 40
    assert max(streams) < 2**31


def test_set_state_goes_on_with_the_dice(client: Client) -> None:
    def play() -> Json:
        client.ask("reset", seed=5)
        for _ in range(3):
            client.set_state(0, 0, player={"energy": 30}, ownedPrograms=[WAIT], turn=20)
            client.ask("step", actionIndex=WAIT)
        state: Json = client.state()
        return state

    played = play()
    assert played == play()
    assert (played["stream"], played["episode"], played["clock"]) == (5, 0, 3)
    assert played["transmissions"]


def test_set_state_before_any_reset(client: Client) -> None:
    assert client.set_state(0, 0)["observation"]["playerRow"] == 0
    assert 0 <= client.state()["stream"] < 2**31
    assert client.ask("step", actionIndex=UP)["observation"]["playerRow"] == 1


def test_log(client: Client) -> None:
    client.ask("reset", seed=4)
    client.set_state(0, 0, stage=2)
    client.ask("step", actionIndex=DOWN)
    assert client.log == [
        "reset: stream 4 episode 0",
        "setState: stream 4 episode 0 clock 0",
        "over: invalid_action in stage 2, 0 actions",
    ]


BEFORE_RESET = "there is no game yet: send reset or setState first"


def test_no_game_yet(client: Client) -> None:
    assert client.ask("step", actionIndex=0) == {"error": BEFORE_RESET}
    assert client.ask("getValidActions") == {"validActions": []}
    internal = {
        "scheduledTaskInterval": 0,
        "nextScheduledTaskTurn": 0,
        "pendingSiphonTransmissions": 0,
        "turnCount": 0,
        "enemies": [],
    }
    assert exactly(client.ask("getInternalState")) == exactly(internal)
    assert "observation" in client.ask("reset")


def test_numbers_such_as_1_0_are_integers(client: Client) -> None:
    expected = client.ask("reset", seed=3), client.ask("step", actionIndex=2)
    got = client.send(b'{"action":"reset","seed":3.0}'), client.ask("step", actionIndex=2.0)
    assert exactly(got) == exactly(expected)
    assert client.set_state(1.0, -0.0, player={"hp": 2e0})["observation"]["playerHP"] == 2  # type: ignore[arg-type]


def test_a_breakdown_as_the_originals_has_its_parts_alone() -> None:
    client = Client(exact_breakdown=True)
    client.set_state(0, 0)
    answer = client.ask("step", actionIndex=RIGHT)
    assert answer["reward"] == 0.04
    assert list(answer["info"]["reward_breakdown"]) == PARTS[:-1]


@pytest.mark.parametrize("action", [RIGHT, WAIT, 19])
def test_a_player_set_to_no_hp_dies_with_the_next_step(client: Client, action: int) -> None:
    """Also if the step would heal: by the exit or by RESET."""
    player = {"hp": 0, "energy": 9}
    client.set_state(5, 4, player=player, ownedPrograms=[WAIT, 19])
    assert action in client.ask("getValidActions")["validActions"]
    answer = client.ask("step", actionIndex=action)
    assert (answer["done"], answer["info"].get("death")) == (True, True)
    assert client.ask("getValidActions") == {"validActions": []}


NUMBERS = "expected 0..27, got"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b"", "not JSON: cannot be read from character 1 on"),
        (b"\n", "not JSON: cannot be read from character 2 on"),
        (b"reset\n", "not JSON: cannot be read from character 1 on"),
        (b'{"action":"reset"', "not JSON: cannot be read from character 18 on"),
        (b'{"action":"reset"} {}', "not JSON: cannot be read from character 20 on"),
        (b'{"action":"step","actionIndex":NaN}', "not JSON: NaN is no JSON number"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (b"null", "request: expected an object, got null"),
        (b'["reset"]', "request: expected an object, got a list of 1"),
        (b"{}", "action: missing"),
        (b'{"action":"step"}', "actionIndex: missing"),
        (b'{"action":"step","actionIndex":null}', f"actionIndex: {NUMBERS} null"),
        (b'{"action":"step","actionIndex":1.5}', f"actionIndex: {NUMBERS} 1.5"),
        (b'{"action":"step","actionIndex":28.0}', f"actionIndex: {NUMBERS} 28"),
        (b'{"action":"step","actionIndex":true}', f"actionIndex: {NUMBERS} true"),
        (b'{"action":"step","actionIndex":"1"}', f'actionIndex: {NUMBERS} "1"'),
        (b'{"action":"step","actionIndex":-1}', f"actionIndex: {NUMBERS} -1"),
        (b'{"action":"step","actionIndex":28}', f"actionIndex: {NUMBERS} 28"),
        (b'{"action":"step","actionIndex":1e400}', f"actionIndex: {NUMBERS} Infinity"),
        (b'{"action":"reset","seed":-1}', "seed: expected 0..2147483647, got -1"),
        (b'{"action":"reset","seed":2147483648}', "seed: expected 0..2147483647, got 2147483648"),
        (b'{"action":"reset","seed":1.5}', "seed: expected 0..2147483647, got 1.5"),
        (b'{"action":"setState"}', "state: missing"),
        (b'{"action":"setState","state":7}', "state: expected an object, got 7"),
    ],
)
def test_refused_requests(client: Client, line: bytes, error: str) -> None:
    client.ask("reset", seed=1)
    before = client.state()
    assert client.send(line) == {"error": error}
    assert client.state() == before


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"action":"reset\xff"}', "not JSON: byte 17 is no UTF-8"),
        (b'{"action":"restart"}', "action: expected one of reset, step, getValidActions, "),
        (b'{"action":["reset"]}', "action: expected one of reset, step, getValidActions, "),
        (
            b'{"action":"step","actionIndex":' + b"9" * 5000 + b"}",
            "not JSON: a number has too many digits",
        ),
        (b'{"action":"step","actionIndex":' + b"9" * 4000 + b"}", f"actionIndex: {NUMBERS} 999"),
        (b'{"action":"\\ud800"}', "action: expected one of "),
    ],
)
def test_refused_requests_begin(client: Client, line: bytes, error: str) -> None:
    client.ask("reset")
    answer = client.send(line)
    assert list(answer) == ["error"]
    assert answer["error"].startswith(error)
    assert len(answer["error"]) < 200


def test_unknown_keys_do_not_matter(client: Client) -> None:
    expected = client.ask("reset", seed=1)
    assert client.ask("reset", seed=1, actionIndex=99, comment={}) == expected
