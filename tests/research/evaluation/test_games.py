"""Evaluation games: each is played to its end, counts once, and is what its seed says."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from suites import first_quickly

from hackmatrix.agents.networks.feature_network import FeatureNetwork
from hackmatrix.agents.networks.mlp import ActorCritic
from hackmatrix.agents.roster.batch_players import function_player, network_player, random_player
from hackmatrix.environments.interface.environment import Step
from hackmatrix.game import native
from hackmatrix.research.evaluation import games
from hackmatrix.research.evaluation.games import play
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.plain_games import PlainGame, play_games


class Lengths(probes.Probe):
    """The game (stream, episode) lasts 1 + episode % 7 steps; step n pays n."""

    def reset_game(self, stream: jax.Array, episode: jax.Array) -> tuple[jax.Array, probes.State]:
        expected = jnp.uint32(2**31 + 5)  # another stream: another length
        wanted = 1 + episode % 7 + 100 * (stream != expected)
        state = probes.State(position=wanted.astype(jnp.int32), time=jnp.int32(0))
        return self.observe(state), state

    def reset(self, key: jax.Array) -> tuple[jax.Array, probes.State]:
        return self.reset_game(jnp.uint32(2**31 + 5), jnp.uint32(0))

    def step(self, key: jax.Array, state: probes.State, action: jax.Array) -> Step:
        after = probes.State(position=state.position, time=state.time + 1)
        ended = after.time >= state.position
        first_obs, first = self.reset(key)
        obs = jnp.where(ended, first_obs, self.observe(after))
        info = {"final_observation": self.observe(after), "stage": after.time, "won": ended}
        state = jax.tree.map(lambda a, b: jnp.where(ended, a, b), first, after)
        return obs, state, after.time.astype(jnp.float32), ended, jnp.bool_(False), info


@pytest.mark.parametrize("threads", first_quickly([1, 2]))
def test_every_game_counts_once_from_its_start_to_its_end(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(games, "_FEWEST", 2)
    player = random_player()._replace(games_at_once=3, threads=threads)
    played = play(Lengths(), player, Limits(episodes=20, seed=5))
    length = 1 + np.arange(20) % 7
    np.testing.assert_array_equal(played.lengths, length)
    np.testing.assert_array_equal(played.returns, length * (length + 1) / 2)
    np.testing.assert_array_equal(played.info["stage"], length)
    np.testing.assert_array_equal(played.actions.sum(axis=1), length)
    np.testing.assert_array_equal(played.final_observation[:, 0], length)
    assert played.terminated.all()
    assert played.info["won"].all()


def test_a_portion_begins_at_its_first_game_and_is_cut_off_at_the_limit() -> None:
    """Here with more places than games."""
    played = play(Lengths(), random_player(), Limits(episodes=14, seed=5, max_steps=4, first=2))
    length = 1 + np.arange(2, 16) % 7
    np.testing.assert_array_equal(played.lengths, np.minimum(length, 4))
    np.testing.assert_array_equal(played.terminated, length <= 4)


@pytest.mark.thorough
def test_no_action_is_asked_for_in_a_game_that_has_ended() -> None:
    """A search has nothing to search there."""
    asked: list[int] = []
    answer = random_player().choose

    def choose(params: Any, carry: Any, observations: Any, masks: Any, keys: Any) -> Any:
        jax.debug.callback(lambda masks: asked.append(int(masks.any(axis=1).sum())), masks)
        return answer(params, carry, observations, masks, keys)

    player = random_player()._replace(choose=choose, games_at_once=3)
    played = play(Lengths(), player, Limits(episodes=20, seed=5))
    jax.effects_barrier()
    assert sum(asked) == played.lengths.sum()


def test_a_function_has_an_action_to_choose_in_a_game_that_has_ended() -> None:
    def first(params: Any, observation: Any, mask: Any, key: Any) -> Any:
        del params, observation, key
        return jnp.where(mask.any(), jnp.argmax(mask), 99)

    masks = jnp.array([[False, True], [False, False]])
    keys = jax.random.split(jax.random.key(0), 2)
    actions, _ = function_player(first, ()).choose((), (), jnp.zeros((2, 1)), masks, keys)
    assert actions.tolist() == [1, 0]


@pytest.mark.thorough
def test_random_play_takes_every_valid_action_alike() -> None:
    """In games that the environment cuts off, and of which it tells nothing."""
    played = play(probes.Pairing(), random_player(), Limits(episodes=1_000))
    share = played.actions.sum(axis=0) / played.actions.sum()
    np.testing.assert_allclose(share, 0.25, atol=0.02)
    assert played.returns.mean() == pytest.approx(4.0, abs=0.15)  # half of 8 answers are right
    assert not played.terminated.any()
    assert (played.lengths == probes.Pairing.max_episode_steps).all()
    assert played.info == {}


@pytest.mark.thorough
@pytest.mark.parametrize("greedy", [False, True])
def test_a_policy_plays_by_its_probabilities_or_by_the_best(greedy: bool) -> None:
    network = FeatureNetwork(probes.Action(), ActorCritic(2, 4, 1), reads_features=True)
    params: Any = jax.tree.map(
        np.zeros_like, jax.device_get(jax.jit(network.init)(jax.random.key(0)))
    )
    params["params"]["Dense_1"]["bias"] = np.log(np.array([0.7, 0.3], np.float32))
    player = network_player("it", network, params, greedy=greedy)
    keys, masks = jax.random.split(jax.random.key(1), 4_000), jnp.ones((4_000, 2), bool)
    observations = jnp.zeros((4_000, 1), jnp.uint8)
    actions, _ = jax.jit(player.choose)(params, (), observations, masks, keys)
    share = (actions == 0).mean()
    assert share == (1.0 if greedy else pytest.approx(0.7, abs=0.03))


@pytest.mark.skipif(not native.available, reason="the native engine is not built")
@pytest.mark.parametrize("forbidden", [frozenset(), frozenset(range(4)), frozenset(range(28))])
def test_random_play_is_the_same_in_the_native_engine(forbidden: frozenset[int]) -> None:
    from hackmatrix.research.evaluation.native_built_in import random_accounts

    in_python = [PlainGame("random", 3, number, 300, forbidden) for number in range(5, 17)]
    limits = Limits(episodes=12, seed=3, max_steps=300, first=5)
    assert random_accounts(limits, forbidden) == play_games(in_python)
