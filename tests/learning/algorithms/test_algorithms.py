"""Every algorithm of the table is what the table says; a file makes another one."""

import sys
from pathlib import Path

import pytest
from paths import DOCS

from hackmatrix.agents.networks.algorithms import ALGORITHMS, import_algorithm
from hackmatrix.cli.main import main
from hackmatrix.learning.algorithms.config import CONFIG_CLASSES
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS
from hackmatrix.learning.settings.config import OPTIONS
from hackmatrix.runs.metrics_file import read_metrics


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_row_says_what_its_class_is(name: str) -> None:
    algorithm = import_algorithm(name)
    known = {m.name for m in (*LEARNER_METRICS, *algorithm.METRICS)}
    assert {f"train/{scalar}" for scalar in algorithm.SCALARS} <= known
    assert set(algorithm.LOSSES) <= set(algorithm.SCALARS)
    assert algorithm.Config is CONFIG_CLASSES[name]
    assert algorithm.Config().algorithm == name
    assert ALGORITHMS[name].settings.keys() <= OPTIONS.keys()
    assert f"`{name}`" in (DOCS / "training.md").read_text()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--algorithm=pqn", "--clip-eps=0.1"], "--clip-eps goes with --algorithm ppo"),
        (["--ent-coef=0.1", "--algorithm=pqn"], "--algorithm ppo or expert_iteration"),
        (["--simulations=4"], "--simulations goes with --algorithm expert_iteration"),
        (["--algorithm=reinforce:None"], "reinforce.py has no None"),
        (["--algorithm=nothing_of_mine:PPO"], "there is no module nothing_of_mine"),
        (["--algorithm=a2c"], "must be one of ppo, pqn, expert_iteration, module:Class"),
        (["--algorithm-settings={clip_eps: 1}"], "goes with an --algorithm of your own"),
        (["--algorithm-settings=seven"], 'must be of the form "{name: value}"'),
        (["--algorithm=reinforce:Reinforce", "--algorithm-settings={a: 1}"], "has bonus, got a"),
        (["--algorithm=reinforce:Reinforce", "--algorithm-settings={bonus: no}"], "bonus must be"),
    ],
)
def test_a_wrong_algorithm_or_setting_is_said(
    flags: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "reinforce.py").write_text(REINFORCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["train", "--env=CartPole-v1", "--print-config", *flags]) == 2
    assert words in capsys.readouterr().err
    sys.modules.pop("reinforce", None)


REINFORCE = '''
"""Policy gradient with a baseline."""

from dataclasses import dataclass

import jax.numpy as jnp
import optax

from hackmatrix.agents.networks import distribution
from hackmatrix.core.options import option
from hackmatrix.environments.interface.metric import Limit, Metric, Over, Severity
from hackmatrix.learning.trainer.algorithm import LearnerState, SampledActions
from hackmatrix.learning.trainer.config import AlgorithmConfig
from hackmatrix.learning.trainer.batches import apply_network, with_advantages
from hackmatrix.learning.trainer.gradients import learn_in_epochs

_HIGH = Limit("loss_any", Severity.WARNING, "it learns", above=-1e9)


@dataclass(frozen=True)
class Config(AlgorithmConfig):
    bonus: float = option(0.0, "added to each advantage", compiled=False)


class Reinforce:
    Config = Config
    SETTINGS = {"lr": 1e-2}
    STORED = ("drawn",)
    LOSSES = ("loss",)
    SCALARS = ("loss", "grad_norm", "drawn", "explained_variance")
    METRICS = (
        Metric("train/loss", Over.UPDATES, "the loss", (_HIGH,)),
        Metric("train/drawn", Over.UPDATES, "mean random number"),
    )
    PER_GAME = ()

    def __init__(self, setup):
        self.setup = setup
        self.optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam())

    def init(self, params, num_envs):
        return LearnerState(params, self.optimizer.init(params))

    def choose(self, params, position, hyper, update):
        log_probs = distribution.log_probabilities(position.logits, position.mask)
        action = distribution.sample(log_probs, position.mask, position.uniform)
        return SampledActions(action, {"drawn": position.uniform})

    def update(self, state, rollout, context):
        network, batch = self.setup.network, with_advantages(rollout, context.hyper)

        def loss(params, minibatch):
            samples = minibatch.samples
            logits, value = apply_network(network, params, minibatch)
            mask = distribution.unpack_mask(samples.mask, network.num_actions)
            log_probs = distribution.log_probabilities(logits, mask)
            chosen = distribution.log_probability(log_probs, samples.action)
            error = jnp.mean((value - samples.returns) ** 2)
            total = error - jnp.mean(chosen * (samples.advantage + context.hyper.bonus))
            return total, {"loss": total, "drawn": jnp.mean(samples.stored["drawn"])}

        return learn_in_epochs(
            *(self.setup, state, batch, context),
            loss=loss, losses=self.LOSSES, optimizer=self.optimizer,
        )
'''


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("    Config = Config\n", "", "has no Config, a subclass of `AlgorithmConfig`"),
        ("    PER_GAME = ()\n", "", "has no PER_GAME; see `Algorithm`"),
        ("context.hyper.bonus", "context.hyper.boni", "boni is no setting that an update takes"),
        ('"drawn", "expl', '"expl', "its SCALARS and the scalars of an update differ in drawn"),
        ("LearnerState(params,", "LearnerState(no_params,", "reinforce.py:"),
    ],
)
def test_a_mistake_in_an_algorithm_is_a_line(
    right: str,
    wrong: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert right in REINFORCE
    (tmp_path / "reinforce.py").write_text(REINFORCE.replace(right, wrong))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    small = ["--num-envs=2", "--num-steps=2", "--num-minibatches=1", "--hidden-dim=4", "--no-wandb"]
    flags = ["--env=CartPole-v1", "--algorithm=reinforce:Reinforce", *small]
    assert main(["train", *flags, "--total-timesteps=4"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "algorithm reinforce:Reinforce: " in line
    assert words in line
    sys.modules.pop("reinforce")


@pytest.mark.slow
def test_a_file_and_a_row_make_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reinforce.py").write_text(REINFORCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    argv = [
        "--env=CartPole-v1",
        "--algorithm=reinforce:Reinforce",
        "--num-envs=16",
        "--num-steps=32",
    ]
    argv += ["--num-minibatches=1", "--update-epochs=1", "--hidden-dim=32", "--log-interval=10"]
    argv += ["--detect-anomaly", "--no-wandb", "--no-tensorboard", f"--output-dir={run}"]
    assert main(["train", *argv, "--total-timesteps=30720"]) == 0
    said = capsys.readouterr()
    assert "for --algorithm reinforce:Reinforce: lr 0.01" in said.out
    assert "it learns" in said.out + said.err  # its metric's alarm
    rows = list(read_metrics(run))
    returns = [row["train/mean_episode_return"] for row in rows]
    assert returns[-1] > 2 * returns[0]
    assert rows[0]["train/drawn"] == pytest.approx(0.5, abs=0.02)
    assert "train/approx_kl" not in rows[0]

    assert main(["train", "--resume", str(run), "--total-timesteps=35840"]) == 0
    assert main(["train", "--resume", str(run), "--algorithm=pqn"]) == 2
    assert "trained with --algorithm reinforce:Reinforce, not pqn" in capsys.readouterr().err
    assert main(["evaluate", str(run), "--episodes=2"]) == 0
    sys.modules.pop("reinforce")
