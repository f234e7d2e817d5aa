"""The games of a session: where their dice come from, and what is told of them."""

import pytest
from bridge_client import Client, Json

from hackmatrix.game.engine import Game

WAIT = 10


@pytest.fixture
def client() -> Client:
    return Client()


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
    client.set_state(0, 0)
    assert 0 <= client.state()["stream"] < 2**31


def test_log(client: Client) -> None:
    client.ask("reset", seed=4)
    client.set_state(0, 0, stage=2)
    client.ask("step", actionIndex=1)
    assert client.log == [
        "reset: stream 4 episode 0",
        "setState: stream 4 episode 0 clock 0",
        "over: invalid_action in stage 2, 0 actions",
    ]
