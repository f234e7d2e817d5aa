"""PQN: its choices, its targets, what it learns, and its runs and agents."""

import dataclasses
import json
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import probe_environments as probes
import pytest

from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.distribution import pack_mask
from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.cli.main import main
from hackmatrix.learning.algorithms.config import PQNConfig
from hackmatrix.learning.algorithms.pqn import PQN, TEMPERATURE, q_values
from hackmatrix.learning.reporting.metrics import summarise
from hackmatrix.learning.trainer.algorithm import Hyperparameters, PolicyOutput, Setup
from hackmatrix.learning.trainer.batches import Batch, Samples
from hackmatrix.learning.trainer.trainer import Trainer
from hackmatrix.runs.metrics_file import read_metrics

CONFIG = PQNConfig(
    num_envs=32,
    num_steps=16,
    num_minibatches=2,
    lr=3e-3,
    gamma=0.9,
    total_timesteps=32 * 16 * 200,
)
LOGITS = jnp.array([5.0, 1.0, 2.0, 9.0])
MASK = jnp.array([True, True, True, False])


def hyper(**settings: Any) -> Hyperparameters:
    config = dataclasses.replace(CONFIG, **settings)
    return Hyperparameters.of(config, config.course)


# --- choices and targets -------------------------------------------------------------------------


def chosen(epsilon: float, number: int = 10_000) -> np.ndarray:
    """How often each action is chosen."""
    logits, mask = (jnp.broadcast_to(x, (number, 4)) for x in (LOGITS, MASK))
    uniform = jnp.arange(number) / number
    settings = hyper(exploration_initial_eps=epsilon, exploration_final_eps=epsilon)
    nothing: Any = None
    position = PolicyOutput(logits, jnp.zeros(number), mask, uniform, None, nothing)
    choice = PQN(nothing).choose(nothing, position, settings, jnp.int32(0))
    assert choice.stored == {}
    return np.bincount(np.asarray(choice.action), minlength=4) / number


def test_it_takes_the_best_valid_action_and_with_chance_epsilon_any_valid_one() -> None:
    np.testing.assert_allclose(chosen(0.0), [1, 0, 0, 0])
    np.testing.assert_allclose(chosen(0.3), [0.8, 0.1, 0.1, 0], atol=1e-3)
    np.testing.assert_allclose(chosen(1.0), [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-3)


def test_epsilon_falls_in_the_first_part_of_the_run() -> None:
    settings = hyper(exploration_fraction=0.5, exploration_final_eps=0.2)
    epsilons = [float(settings.epsilon(update, np)) for update in (0, 50, 100, 150)]
    assert epsilons == pytest.approx([1.0, 0.6, 0.2, 0.2])


def test_the_value_is_the_largest_q_of_the_valid_actions() -> None:
    actions = jnp.arange(3)
    q = q_values(LOGITS[None], jnp.array([7.0]), MASK[None], actions)
    np.testing.assert_allclose(q, 7.0 + TEMPERATURE * np.array([0.0, -4.0, -3.0]), rtol=1e-6)


def test_the_loss_is_that_of_q_from_the_lambda_returns() -> None:
    class Fixed:
        num_actions = 4

        def __call__(self, params: Any, obs: Any) -> Any:
            return LOGITS[None] * params, jnp.array([7.0]), ()

    samples = Samples(
        obs=jnp.zeros((1, 1)),
        mask=pack_mask(MASK[None]),
        action=jnp.array([1], jnp.uint8),
        stored={},
        value=jnp.array([4.0]),
        advantage=jnp.array([2.0]),  # so the return is 6
        starts=None,
    )
    setup: Any = Setup(probes.Pairing(), cast(Any, Fixed()), CONFIG)
    total, parts = PQN(setup).loss(1.0, Batch(samples, ()))
    assert total == parts["td_loss"] == pytest.approx(0.5 * (7.0 - 0.4 - 6.0) ** 2)


# --- what it learns ------------------------------------------------------------------------------


def trained(env: probes.Probe, updates: int, **options: Any) -> tuple[Trainer, Any]:
    config = NetworkConfig(hidden_dim=32, num_layers=1, layer_norm=True)
    trainer = Trainer(env, CONFIG, config, **options)
    return trainer, trainer.run(trainer.init(0), updates)


@pytest.mark.thorough
def test_it_learns_to_pair_observation_and_action() -> None:
    trainer, state = trained(probes.Pairing(), 180, detect_anomaly=True)
    state, _ = trainer.take_sums(state)
    state, sums = trainer.take_sums(trainer.run(state, 20))
    row = summarise(jax.device_get(sums), trainer.metrics)
    assert row["train/mean_reward"] > 0.95  # with 2.5 % of wrong actions by chance
    assert row["train/epsilon"] == pytest.approx(0.05, abs=1e-3)
    measured = {"train/td_loss", "train/epsilon", "train/explained_variance", "train/grad_norm"}
    assert measured <= row.keys()
    assert not {"train/entropy", "train/approx_kl", "train/pg_loss", "train/vf_loss"} & row.keys()
    assert trainer.anomaly(state) is None
    games = state.games.replace(discounted_return=state.games.discounted_return * jnp.nan)
    found = trainer.anomaly(trainer.run(dataclasses.replace(state, games=games), 1))
    assert found is not None
    assert found[1].tensor == "td_loss"


@pytest.mark.slow
def test_values_are_those_of_greedy_play() -> None:
    trainer, state = trained(probes.Discount(), 190)
    _, values, _ = trainer.network(state.params, jnp.array([[0], [1]], jnp.uint8))
    np.testing.assert_allclose(values * state.reward_scale.deviation, [0.9, 1.0], atol=0.05)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_learns_cartpole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    flags = "--config cartpole_pqn --no-wandb --no-tensorboard --output-dir"
    assert main(["train", *flags.split(), run]) == 0
    capsys.readouterr()
    assert main(["evaluate", run, "--episodes", "100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mean_return"] > 490


# --- its runs and agents -------------------------------------------------------------------------

TINY = [
    *("--env=CartPole-v1", "--algorithm=pqn", "--num-envs=8", "--num-steps=8", "--hidden-dim=8"),
    *("--log-interval=2", "--no-wandb", "--no-tensorboard"),
]


def train(*argv: str) -> None:
    assert main(["train", *argv]) == 0


def arrays(run: Path) -> dict[str, np.ndarray]:
    return dict(np.load(run / "final_params.npz"))


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)


@pytest.mark.slow
@pytest.mark.usefixtures("shared_programs")
def test_a_run_is_resumed_exactly_but_not_by_another_algorithm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, half = tmp_path / "whole", tmp_path / "half"
    train(*TINY, "--total-timesteps=512", f"--output-dir={whole}")
    # A longer run has another course of learning rate and epsilon, so it is stopped, not shortened.
    train(*TINY, "--total-timesteps=512", "--save-interval=4", f"--output-dir={half}")
    train("--resume", str(half / "checkpoints" / "4"), "--rewind")
    assert_same(arrays(whole), arrays(half))
    rows = [list(read_metrics(run)) for run in (whole, half)]
    assert [row["train/td_loss"] for row in rows[0]] == [row["train/td_loss"] for row in rows[1]]

    capsys.readouterr()
    assert main(["train", "--resume", str(half), "--algorithm", "ppo"]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert "the checkpoint was trained with --algorithm pqn, not ppo: leave it as it was" in told


@pytest.mark.slow
def test_its_agent_is_evaluated_greedily_and_asked_of_positions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import hackmatrix
    from hackmatrix.agents.roster.position_policies import load
    from hackmatrix.game.engine.observation import observe

    run = tmp_path / "run"
    game = ["--env=HackMatrix", "--observation=tactical", "--total-timesteps=64"]
    train(*TINY, *game, f"--output-dir={run}")
    assert load_policy(run).greedy
    capsys.readouterr()
    told = []
    for flags in ([], ["--greedy"]):
        assert main(["evaluate", str(run), "--episodes=8", "--max-steps=30", "--json", *flags]) == 0
        told.append(json.loads(capsys.readouterr().out)["mean_return"])
    assert told[0] == told[1]

    record = observe(hackmatrix.Game.new(1).state)
    logits, value = load(run / "final_params.npz")(record, ())  # type: ignore[operator]
    assert len(logits) == 28
    assert np.isfinite([*logits, value]).all()
