"""Every algorithm of the table is what the table says, and a row and a file make another one."""

import sys
from pathlib import Path

import pytest
from paths import DOCS

from hackmatrix.agents.networks.algorithms import ALGORITHMS, Row
from hackmatrix.cli.main import main
from hackmatrix.learning.ppo.algorithm import algorithm_of
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS
from hackmatrix.learning.settings.config import OPTIONS
from hackmatrix.runs.metrics_file import read_metrics


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_row_says_what_its_module_is(name: str) -> None:
    algorithm = algorithm_of(name)
    known = {m.name for m in (*LEARNER_METRICS, *algorithm.METRICS)}
    assert {f"train/{scalar}" for scalar in algorithm.SCALARS} <= known
    assert set(algorithm.LOSSES) <= set(algorithm.SCALARS)
    assert ALGORITHMS[name].settings.keys() <= OPTIONS.keys()
    assert f"`{name}`" in (DOCS / "training.md").read_text()


REINFORCE = '''
"""Policy gradient with a baseline."""

import jax.numpy as jnp
import optax

from hackmatrix.agents.networks import distribution
from hackmatrix.environments.interface.metric import Limit, Metric, Over, Severity
from hackmatrix.learning.ppo.algorithm import Choice
from hackmatrix.learning.ppo.epochs import answers, gradient_steps

STORED = ("drawn",)
LOSSES = ("loss",)
SCALARS = ("loss", "grad_norm", "drawn")
_HIGH = Limit("loss_any", Severity.WARNING, "it learns", above=-1e9)
METRICS = (
    Metric("train/loss", Over.UPDATES, "the loss", (_HIGH,)),
    Metric("train/drawn", Over.UPDATES, "mean random number"),
)


def optimizer(max_grad_norm):
    return optax.chain(optax.clip_by_global_norm(max_grad_norm), optax.scale_by_adam())


def choose(task, params, position, hyper, update):
    log_probs = distribution.log_probabilities(position.logits, position.mask)
    action = distribution.sample(log_probs, position.mask, position.uniform)
    return Choice(action, {"drawn": position.uniform})


def learn(task, weights, batch, keys, hyper, network_params):
    def loss(params, batch):
        logits, value = answers(task.network, params, batch)
        mask = distribution.unpack_mask(batch.samples.mask, task.network.num_actions)
        log_probs = distribution.log_probabilities(logits, mask)
        chosen = distribution.log_probability(log_probs, batch.samples.action)
        error = jnp.mean((value - batch.samples.returns) ** 2)
        total = error - jnp.mean(chosen * batch.samples.advantage)
        return total, {"loss": total, "drawn": jnp.mean(batch.samples.stored["drawn"])}

    return gradient_steps(
        *(task, weights, batch, keys, hyper, network_params),
        loss=loss,
        losses=LOSSES,
        optimizer=optimizer(hyper.max_grad_norm),
    )
'''


@pytest.mark.slow
def test_a_file_and_a_row_make_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "reinforce.py").write_text(REINFORCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(ALGORITHMS, "reinforce", Row("reinforce", settings={"lr": 1e-2}))
    run = tmp_path / "run"
    argv = ["--env=CartPole-v1", "--algorithm=reinforce", "--num-envs=16", "--num-steps=32"]
    argv += ["--num-minibatches=1", "--update-epochs=1", "--hidden-dim=32", "--log-interval=10"]
    argv += ["--detect-anomaly", "--no-wandb", "--no-tensorboard", f"--output-dir={run}"]
    assert main(["train", *argv, "--total-timesteps=30720"]) == 0
    said = capsys.readouterr()
    assert "for --algorithm reinforce: lr 0.01" in said.out
    assert "it learns" in said.out + said.err  # its metric's alarm
    rows = list(read_metrics(run))
    returns = [row["train/mean_episode_return"] for row in rows]
    assert returns[-1] > 2 * returns[0]
    assert rows[0]["train/drawn"] == pytest.approx(0.5, abs=0.02)
    assert "train/approx_kl" not in rows[0]

    assert main(["train", "--resume", str(run), "--total-timesteps=35840"]) == 0
    assert main(["train", "--resume", str(run), "--algorithm=pqn"]) == 2
    assert "was trained with --algorithm reinforce, not pqn" in capsys.readouterr().err
    assert main(["evaluate", str(run), "--episodes=2"]) == 0
    sys.modules.pop("reinforce")
