"""Expert iteration: what a search teaches, what is learned of it, and its runs."""

import dataclasses
import json
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest
from memory_network import MemoryNetwork

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.distribution import pack_mask
from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.environments.classic import ClassicControl, SeenGames
from hackmatrix.environments.hackmatrix.env import HackMatrixEnv
from hackmatrix.environments.wrappers import FloatObservations
from hackmatrix.learning.algorithms.config import ExpertIterationConfig
from hackmatrix.learning.algorithms.expert_iteration import ExpertIteration
from hackmatrix.learning.reporting.metrics import summarise
from hackmatrix.learning.run.snapshots import named_leaves
from hackmatrix.learning.trainer.algorithm import Setup
from hackmatrix.learning.trainer.batches import Batch, Samples
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.runs.metrics_file import read_metrics

CONFIG = ExpertIterationConfig(
    normalize_rewards=False,
    num_envs=32,
    num_steps=8,
    num_minibatches=2,
    lr=3e-3,
    gamma=0.9,
    ent_coef=0.01,
    simulations=16,
    total_timesteps=32 * 8 * 200,
)
NETWORK = NetworkConfig(hidden_dim=32, num_layers=1)


class SeenGrid(probes.Grid):
    """The grid, in which an observation tells all but how long the episode has lasted."""

    def imagination(self) -> SeenGames:
        return SeenGames(self, lambda seen: probes.State(jnp.int32(seen[0]), jnp.int32(0)))


class SeenPolicy(probes.Policy):
    """One step, whose right action the observation tells."""

    def imagination(self) -> SeenGames:
        return SeenGames(self, lambda seen: probes.State(jnp.int32(seen[0]), jnp.int32(0)))


# --- made-up games -------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["CartPole-v1", "Acrobot-v1", "MountainCar-v0"])
def test_made_up_games_go_on_as_the_true_ones(name: str) -> None:
    """Classic control has no chance: from what is seen, the same actions lead to the same."""
    env = ClassicControl(name)
    mind = env.imagination()
    seen, true = jax.vmap(env.reset)(jax.random.split(jax.random.key(3), 4))
    which = jnp.arange(4)
    words = worlds = which.astype(jnp.uint32)
    memory = mind.after(mind.begin(4), seen)
    step = jax.jit(jax.vmap(env.step))
    for time in range(3):  # so that velocities are not 0
        keys = jax.random.split(jax.random.key(time), 4)
        seen, true, *_ = step(keys, true, which % env.num_actions)
    games, step_made_up = mind.imagine(memory, seen, which, words, worlds), jax.jit(mind.step)
    for time in range(3):
        actions = (which + time) % env.num_actions
        keys = jax.random.split(jax.random.key(9), 4)
        seen, true, paid, *_ = step(keys, true, actions)
        imagined, games, rewards, ended = step_made_up(games, actions)
        np.testing.assert_allclose(imagined, seen, atol=1e-4)
        np.testing.assert_array_equal(rewards, paid)
        assert not ended.any()
    assert mind.valid(games).all()


@pytest.mark.thorough
def test_a_made_up_game_that_has_ended_stays_so_and_pays_nothing() -> None:
    mind = SeenPolicy().imagination()
    zeros = jnp.zeros(2, jnp.int32)
    seen = jnp.array([[0], [1]], jnp.uint8)
    words = worlds = zeros.astype(jnp.uint32)
    games = mind.imagine((), seen, jnp.arange(2), words, worlds)
    _, games, rewards, ended = mind.step(games, zeros)
    assert (rewards.tolist(), ended.tolist()) == ([1, -1], [True, True])
    _, _, rewards, ended = mind.step(games, zeros)
    assert (rewards.tolist(), ended.tolist()) == ([0, 0], [True, True])


# --- what it learns ------------------------------------------------------------------------------


def test_the_loss_is_the_divergence_from_the_policy_of_the_search_and_that_of_the_values() -> None:
    logits, mask = jnp.array([0.0, 0.0, 5.0]), jnp.array([True, True, False])

    class Fixed:
        num_actions = 3

        def __call__(self, params: Any, obs: Any) -> Any:
            return logits[None] * params, jnp.array([7.0]), ()

    samples = Samples(
        obs=jnp.zeros((1, 1)),
        mask=pack_mask(mask[None]),
        action=jnp.array([1], jnp.uint8),
        stored={"policy": jnp.array([[0.25, 0.75, 0.0]]), "gain": jnp.array([0.5])},
        value=jnp.array([4.0]),
        advantage=jnp.array([2.0]),  # so the return is 6
        starts=None,
    )
    half = jnp.float32(0.5)
    setup: Any = Setup(probes.Pairing(), cast(Any, Fixed()), CONFIG)
    total, parts = ExpertIteration(setup).loss(1.0, Batch(samples, ()), half, half)
    divergence = 0.25 * np.log(0.25 / 0.5) + 0.75 * np.log(0.75 / 0.5)
    assert parts["divergence"] == pytest.approx(divergence)
    assert parts["search_information"] == pytest.approx(divergence)  # from random play
    assert parts["vf_loss"] == pytest.approx(0.5)
    assert parts["entropy"] == pytest.approx(np.log(2))
    assert parts["search_gain"] == 0.5
    assert total == pytest.approx(divergence + 0.25 - 0.5 * np.log(2))


@pytest.mark.thorough
def test_a_search_finds_the_right_action_before_anything_is_learned() -> None:
    """Of one step, by a network that knows nothing: the observed action pays 1, the other -1.

    Each is tried 8 times, which counts half beside the doubt.
    """
    config = dataclasses.replace(CONFIG, num_steps=1, num_minibatches=1)
    trainer = Trainer(SeenPolicy(), config, NETWORK)
    state = trainer.run(trainer.init(0), 1)
    state, sums = trainer.take_sums(state)
    row = summarise(jax.device_get(sums), trainer.metrics)
    assert row["train/mean_reward"] > 0.9
    assert row["train/divergence"] > 0.1
    assert row["train/search_information"] > 0.1
    assert row["train/search_gain"] == pytest.approx(0.5, abs=0.05)


@pytest.mark.slow
def test_it_learns_the_ways_through_a_grid() -> None:
    trainer = Trainer(SeenGrid(), CONFIG, NETWORK)
    state = trainer.run(trainer.init(0), 100)
    cells = jnp.arange(24, dtype=jnp.uint8)[:, None]
    logits, values, _ = trainer.network(state.params, cells)
    mask = jax.vmap(SeenGrid().valid)(cells[:, 0].astype(jnp.int32))
    best = SeenGrid().values(0.9, optimal=True)
    np.testing.assert_allclose(values, best[:24], atol=0.1)
    after = np.arange(24) + SeenGrid.moves[np.where(mask, logits, -np.inf).argmax(axis=1)]
    assert (best[after] > best[:24]).sum() + (after == SeenGrid.goal).sum() == 24
    state, _ = trainer.take_sums(state)
    _, sums = trainer.take_sums(trainer.run(state, 10))
    row = summarise(jax.device_get(sums), trainer.metrics)
    assert {"train/divergence", "train/search_gain", "train/entropy"} <= row.keys()
    assert not {"train/approx_kl", "train/clip_frac", "train/pg_loss"} & row.keys()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_learns_cartpole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    flags = "--config cartpole_expert_iteration --no-wandb --no-tensorboard --output-dir"
    assert main(["train", *flags.split(), run]) == 0
    capsys.readouterr()
    assert main(["evaluate", run, "--episodes", "100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean_return"] > 350  # random play: 22


# --- its runs ------------------------------------------------------------------------------------

TINY = [
    *("--env=HackMatrix", "--observation=tactical", "--reward=progress", "--gamma=0.998"),
    *("--algorithm=expert_iteration", "--simulations=4", "--num-envs=8", "--num-steps=8"),
    *("--hidden-dim=8", "--log-interval=2", "--no-wandb", "--no-tensorboard"),
]


def train(*argv: str) -> None:
    assert main(["train", *argv]) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("shared_programs")
def test_a_run_of_the_game_is_resumed_exactly_and_its_agent_can_be_searched_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, half = tmp_path / "whole", tmp_path / "half"
    train(*TINY, "--total-timesteps=512", f"--output-dir={whole}")
    train(*TINY, "--total-timesteps=512", "--save-interval=4", f"--output-dir={half}")
    train("--resume", str(half / "checkpoints" / "4"), "--rewind")
    one, other = (dict(np.load(run / "final_params.npz")) for run in (whole, half))
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)
    told = [[row.get("train/divergence") for row in read_metrics(run)] for run in (whole, half)]
    assert told[0] == told[1]
    assert any(told[0])
    capsys.readouterr()
    argv = ["evaluate", f"{whole}@2", "--episodes=2", "--max-steps=5", "--json"]
    assert main(argv) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 2


@pytest.mark.slow
def test_agents_of_one_program_are_those_of_their_seeds_alone() -> None:
    def params(agents: range) -> Any:
        trainer = Trainer(SeenGrid(), CONFIG, NetworkConfig(hidden_dim=8), agents=agents)
        return jax.device_get(trainer.run(trainer.init(agents[0]), 2).params)

    both = params(range(3, 5))
    alone = params(range(4, 5))
    jax.tree.map(lambda two, one: np.testing.assert_array_equal(two[1], one), both, alone)


def test_it_needs_values_in_units_of_the_reward() -> None:
    with pytest.raises(UserError, match="expert_iteration goes with --no-normalize-rewards"):
        ExpertIterationConfig(normalize_rewards=True)


def test_it_needs_a_network_without_memory() -> None:
    with pytest.raises(UserError, match="searches, which goes with networks without memory"):
        Trainer(SeenGrid(), CONFIG, MemoryNetwork(SeenGrid()))


@pytest.mark.parametrize(
    "env", [probes.Grid(), FloatObservations(HackMatrixEnv()), HackMatrixEnv("planes")]
)
def test_it_needs_an_environment_that_makes_games_up(env: Any) -> None:
    with pytest.raises(UserError, match="has no `imagination` that makes them up"):
        Trainer(env, CONFIG, NETWORK)


def test_checkpoints_keep_the_names_of_what_players_know() -> None:
    names = [name for name, _ in named_leaves(Trainer(SeenGrid(), CONFIG, NETWORK).state_shape())]
    assert "games.known.observations" in names
    assert not any("information" in name for name in names)
