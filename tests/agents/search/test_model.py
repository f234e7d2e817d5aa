"""Searches of HackMatrix: who can search, and that it plays valid actions by what it sees alone."""

import dataclasses
import random
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lockstep_starts import rich
from look_alikes import beside_a_hidden_cryptog, other_secrets, rich_game

from hackmatrix.agents import shipped
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import make_network
from hackmatrix.agents.networks.policy import Policy, load_policy
from hackmatrix.agents.roster.batch_players import search_player
from hackmatrix.agents.search.analysis import Analyst
from hackmatrix.agents.search.model import Searcher, weight_of_returns
from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
from hackmatrix.environments.hackmatrix.imagination import UndoMemory
from hackmatrix.environments.registry import make_environment
from hackmatrix.game import native
from hackmatrix.game.engine.game import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.rules.actions import FIRST_PROGRAM, NUM_ACTIONS
from hackmatrix.game.rules.observation import number_of
from hackmatrix.game.rules.programs import ProgramId
from hackmatrix.research.evaluation import games as evaluation
from hackmatrix.research.evaluation.games import play
from hackmatrix.research.evaluation.limits import Limits

NETWORK = NetworkConfig(hidden_dim=4, num_layers=1)
RUN: dict[str, object] = {"normalize_rewards": False, "reward": "progress", "gamma": 0.998}


def policy(**run: object) -> Policy:
    network = make_network(make_environment("HackMatrix-v1", "tactical"), NETWORK)
    about = {"config": run}
    params: dict[str, Any] = network.init(jax.random.key(0))
    return Policy(Path("it.npz"), params, NETWORK, "HackMatrix-v1", "tactical", about)


@pytest.mark.thorough
def test_values_must_be_in_units_of_the_reward() -> None:
    runs: list[dict[str, object]] = [{}, {**RUN, "normalize_rewards": True}]
    for run in runs:
        with pytest.raises(UserError, match=r"it\.npz: search needs .* normalize_rewards false"):
            Searcher.of(policy(**run), 4)


def test_only_hackmatrix_can_be_searched() -> None:
    other = dataclasses.replace(policy(**RUN), environment="CartPole-v1")
    with pytest.raises(UserError, match="plays CartPole-v1; only HackMatrix-v1 can be searched"):
        Searcher.of(other, 4)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["shipped", "--search", "4", "--greedy"], "shipped@4: a search goes without --greedy"),
        (["shipped@4", "--forbid", "ROW"], "shipped@4: a search goes without --forbid"),
    ],
)
def test_search_needs_params_alone(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", *argv]) == 2
    assert capsys.readouterr().err == f"hackmatrix evaluate: error: {message}\n"


def test_the_longer_a_stage_lasts_the_less_returns_are_worth() -> None:
    state = rich(random.Random(4))
    records = []
    for turn in (0, 40, 80, 400):
        state.turn = turn
        records.append(np.frombuffer(observe(state), np.uint8))
    seen = jnp.asarray(np.array(records))
    np.testing.assert_allclose(weight_of_returns("stages", seen), [100, 100, 50, 10])
    np.testing.assert_allclose(weight_of_returns("win", seen), [1300, 1300, 650, 130])


@pytest.mark.thorough
def test_what_a_player_can_not_see_changes_nothing_that_is_found() -> None:
    """Priors, visits, means, lines and choices of rollouts through games with other secrets.

    CRASH alone tells a player something: it is valid beside a hidden cryptog.
    """
    rng, compared = random.Random(3), 0
    analyst = Analyst(policy(**RUN), 16)
    for _ in range(12):
        game = Game(rich_game(rng))
        for _ in range(2):
            other = Game(other_secrets(game.state, rng))
            assert other.state != game.state
            told = set(game.valid_actions()) ^ set(other.valid_actions())
            assert told <= {FIRST_PROGRAM + ProgramId.CRASH}
            if not told:
                assert analyst.analyse(game, seed=5) == analyst.analyse(other, seed=5)
                compared += 1
    assert compared > 20


@pytest.mark.thorough
def test_crash_beside_a_hidden_cryptog_is_no_lost_game() -> None:
    game = beside_a_hidden_cryptog()
    crash = FIRST_PROGRAM + ProgramId.CRASH
    analysis = Analyst(load_policy(shipped.PARAMS), 32).analyse(game)
    worth = {choice.action: choice.value for choice in analysis.choices}
    assert worth[crash] is not None
    assert worth[crash] > analysis.value - 0.5


GAMES = 8


@pytest.mark.slow
@pytest.mark.skipif(not native.available, reason="there is no native engine")
def test_it_finds_the_same_in_games_of_either_engine() -> None:
    rng = random.Random(12)
    states = [rich_game(rng) for _ in range(GAMES)]
    records = jnp.asarray(np.array([np.frombuffer(observe(s), np.uint8) for s in states]))
    masks = np.array([[a in Game(s).valid_actions() for a in range(NUM_ACTIONS)] for s in states])
    parts = [UndoMemory.of(state) for state in states]
    memory = jax.tree.map(lambda *memories: jnp.concatenate(memories), *parts)
    searcher, params = Searcher.of(policy(**RUN), 16), policy(**RUN).params

    def found(engine: str) -> Any:
        env = HackMatrixEnv(layout="tactical", reward="progress", engine=engine)
        search = jax.jit(searcher._replace(imagination=env.imagination()).search)
        return search(params, memory, records, masks, jnp.arange(GAMES, dtype=jnp.uint32))

    of_both = zip(*map(jax.tree.leaves, map(found, ("native", "jax"))), strict=True)
    for ours, theirs in of_both:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.slow
def test_it_plays_whole_games_by_however_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = policy(**RUN)
    env = make_environment(mine.environment, mine.observation)
    player = search_player("it", Searcher.of(mine, 4), mine.params)
    games = play(env, player, Limits(episodes=GAMES, max_steps=40))
    monkeypatch.setattr(evaluation, "_FEWEST", 1)
    shared = play(env, player._replace(threads=3), Limits(episodes=GAMES, max_steps=40))
    for one, other in zip(jax.tree.leaves(games), jax.tree.leaves(shared), strict=True):
        np.testing.assert_array_equal(one, other)
    died = number_of(games.final_observation, "hp") == 0
    assert (died == games.terminated).all()  # an action that is not valid ends a game, too
    assert games.lengths.max() == 40 or died.all()
