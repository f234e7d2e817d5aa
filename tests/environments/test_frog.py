"""The example of an environment of one's own: its rules, and that it is learned."""

import runpy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import paths
import pytest

from hackmatrix.agents.roster.batch_players import network_player, random_player
from hackmatrix.environments.interface.environment import Step
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS, summarise
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.research.evaluation.games import play
from hackmatrix.research.evaluation.limits import Limits

FROG = runpy.run_path(str(paths.FROG))
Frog, Pond = FROG["Frog"], FROG["Pond"]

Array = jax.Array

MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]  # up, down, left, right


class Watched(Frog):
    """The same game, in which an action that is not valid costs a million."""

    def step(self, key: Array, pond: Any, action: Array) -> Step:
        valid = self.action_mask(pond)[action]
        observation, after, reward, *rest = super().step(key, pond, action)
        return observation, after, jnp.where(valid, reward, -1e6), *rest


@pytest.mark.thorough
def test_games_follow_the_rules() -> None:
    """Against sets of places, in 200 random games."""
    env, games, random = Frog(), 200, np.random.default_rng(0)
    step, masks = jax.jit(jax.vmap(env.step)), jax.jit(jax.vmap(env.action_mask))
    keys = jax.random.split(jax.random.key(0), games)
    _, ponds = jax.vmap(env.reset)(keys)
    begun = np.asarray(ponds.frog)
    assert set(begun) == {6 * row + column for row in range(1, 5) for column in range(1, 5)}
    frogs = [divmod(int(place), 6) for place in begun]
    left = [{(r, c) for r in range(1, 5) for c in range(1, 5)} - {frog} for frog in frogs]
    ended, returns, won = [False] * games, [0.0] * games, 0
    while not all(ended):
        mask = np.asarray(masks(ponds))
        weights = np.where(mask, random.random(mask.shape), -1)
        actions = weights.argmax(axis=1)
        _, ponds, rewards, terminated, truncated, info = jax.device_get(step(keys, ponds, actions))
        assert not truncated.any()
        for game in range(games):
            if ended[game]:
                continue
            places = [(frogs[game][0] + r, frogs[game][1] + c) for r, c in MOVES]
            assert mask[game].tolist() == [place in left[game] for place in places]
            frogs[game] = places[actions[game]]
            left[game].remove(frogs[game])
            row, column = frogs[game]
            ended[game] = not any((row + r, column + c) in left[game] for r, c in MOVES)
            returns[game] += rewards[game]
            final = info["final_observation"]
            assert divmod(int(final.frog[game]), 6) == frogs[game]
            assert set(np.flatnonzero(final.pads[game])) == {6 * r + c for r, c in left[game]}
            assert terminated[game] == ended[game]
            assert info["won"][game] == (not left[game])
            # The next game starts in the same call, and no other does.
            assert ponds.pads[game].sum() == (15 if ended[game] else len(left[game]))
            won += not left[game]
    assert returns == [15 - len(each) for each in left]
    assert won > 0


@pytest.mark.slow
def test_it_is_learned_and_an_action_that_is_masked_is_never_taken() -> None:
    config = TrainConfig.of(
        num_envs=64, num_steps=64, hidden_dim=64, lr=1e-3, ent_coef=0.02, total_timesteps=250_000
    )
    trainer = Trainer(Watched(), config.learning, config.network)
    state, sums = trainer.take_sums(
        trainer.run(trainer.init(0), config.learning.course.num_updates)
    )
    assert summarise(jax.device_get(sums), LEARNER_METRICS)["train/mean_reward"] == 1
    player = network_player("frog", trainer.network, trainer.network_params(state), greedy=False)
    by_chance, learned = (
        play(Watched(), each, Limits(episodes=500)) for each in (random_player(), player)
    )
    assert by_chance.returns.mean() == pytest.approx(10.8, abs=0.3)
    assert by_chance.info["won"].mean() < 0.2
    assert learned.returns.mean() > 14
    assert learned.info["won"].mean() > 0.8
    assert min(by_chance.returns.min(), learned.returns.min()) > 0
