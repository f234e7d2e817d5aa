"""A game's account is what happened in it."""

import random

import pytest

from hackmatrix.game import native
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.actions import FIRST_PROGRAM, SIPHON
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.research.evaluation import accounts, plain_games
from hackmatrix.research.evaluation.accounts import Account, Death, account
from hackmatrix.research.evaluation.plain_games import PlainGame, PlayedReplay, play_games, replays

RESET = FIRST_PROGRAM + ProgramId.RESET


def at_random(episode: int, longest: int = 300) -> Account:
    rng = random.Random(episode)

    def choose(state: State) -> int:
        return rng.choice(Game(state).valid_actions())

    return account(EVALUATION_STREAM, episode, choose, longest)


def test_an_account_adds_up() -> None:
    ended = cut_off = siphoned = 0
    for episode in range(60):
        told = at_random(episode, longest=40)
        assert sum(stage.actions for stage in told.stages) == len(told.actions)
        assert sum(stage.siphonings for stage in told.stages) == len(told.siphonings)
        assert len(told.siphonings) == told.actions.count(SIPHON)
        assert [stage.stage for stage in told.stages] == list(range(1, len(told.stages) + 1))
        assert [stage.cleared for stage in told.stages[:-1]] == [True] * told.stages_cleared
        assert told.taken_at_once <= told.chances
        assert (told.death is None) == (told.ending != "died")
        ended += told.ending == "died"
        cut_off += told.ending is None
        siphoned += len(told.siphonings)
        if told.death is not None:
            assert told.death.stage == told.stages[-1].stage
            assert 1 <= told.death.hits <= told.stages[-1].hits
    assert min(ended, cut_off, siphoned) > 5


@pytest.mark.thorough
@pytest.mark.parametrize("in_c", [True, False])
def test_a_replay_tells_the_same(in_c: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if in_c and not native.available:
        pytest.skip("the native engine was left out")
    monkeypatch.setattr(native, "available", in_c)
    by_rule = PlainGame("scripted", 0, 7, 2_000 if in_c else 60)  # which wins
    told = [*(at_random(i, 20 + 5 * i) for i in range(5)), *play_games([by_rule])]
    numbers = [*range(5), by_rule.episode]
    again = replays(
        [PlayedReplay(0, i, each.actions) for i, each in zip(numbers, told, strict=True)]
    )
    assert again == told
    if in_c:
        assert {each.ending for each in told} == {"won", "died", None}
        assert {stage.cleared for each in told for stage in each.stages} == {True, False}


DYING = """\
.. .. .. .. .. X.
.. .. .. .. .. ..
.. .. .c .. .. ..
.. .. .@ .v .. ..
.. .. .. .. .. ..
s. .. .. .. .. s.
game stream 7 episode 0 clock 3
stage 3 interval 9 next_task 9 pending 0 turn 2 atk_uses 0
flags
player hp 1 credits 0 energy 0 siphons 0 attack 1 score 0
owned
enemy virus 2,3 hp 2 from_siphon
enemy cryptog 3,2 hp 2 last 3,2
"""


@pytest.mark.parametrize(
    ("action", "death"),
    [
        (3, Death(3, "cryptog", 1, from_siphon=False, unseen=False)),  # stuns the virus
        (0, Death(3, "virus", 1, from_siphon=True, unseen=False)),  # stuns the cryptog
    ],
)
def test_the_last_hit_is_told(action: int, death: Death, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "new_game", lambda _: Game.from_text(DYING).state)
    told = account(7, 0, lambda _: action, 10)
    assert told.death == death
    assert (told.ending, told.won, told.stages_cleared) == ("died", False, 0)


def test_who_comes_from_out_of_sight_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = DYING.replace("enemy virus 2,3 hp 2 from_siphon\n", "").replace(".v", "..")
    hidden = hidden.replace(".. .. .c .. .. ..", ".. .c .. .. .. ..")
    hidden = hidden.replace("3,2 hp 2 last 3,2", "3,1 hp 2 last 3,3")
    monkeypatch.setattr(accounts, "new_game", lambda _: Game.from_text(hidden).state)
    told = account(7, 0, lambda _: 2, 10)  # walks under it
    assert told.death == Death(3, "cryptog", 1, from_siphon=False, unseen=True)


def test_processes_play_the_same_games(monkeypatch: pytest.MonkeyPatch) -> None:
    games = [PlainGame("scripted", 3, number, 15) for number in range(8)]
    alone = play_games(games)
    monkeypatch.setattr(plain_games, "_WORTH_A_PROCESS", 2)
    assert play_games(games) == alone


def test_healing_is_no_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = DYING.replace("credits 0 energy 0", "credits 9 energy 9").replace(
        "owned\n", "owned RESET\n"
    )
    monkeypatch.setattr(accounts, "new_game", lambda _: Game.from_text(ready).state)
    told = account(7, 0, lambda _: RESET, 1)
    assert [stage.hits for stage in told.stages] == [0]
