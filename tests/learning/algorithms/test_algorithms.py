"""Every algorithm of the table is what the table says; a file makes another one."""

import sys
from pathlib import Path
from typing import Any

import pytest
from paths import DOCS, DQN

from hackmatrix.agents.networks.architectures import ALGORITHMS, import_algorithm
from hackmatrix.cli.main import main
from hackmatrix.learning.algorithms.config import CONFIG_CLASSES
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS
from hackmatrix.learning.settings.config import OPTIONS, TrainConfig
from hackmatrix.learning.settings.resolve import resolve


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
    ("name", "defaults"),
    [
        ("ppo", {}),
        ("pqn", {"layer_norm": True, "lr_schedule": "linear"}),
        ("expert_iteration", {"normalize_rewards": False, "ent_coef": 0.01}),
    ],
)
def test_defaults_of_its_own_are_told(name: str, defaults: dict[str, Any]) -> None:
    config, notes = resolve({"algorithm": name})
    assert defaults.items() <= config.as_dict().items()
    assert notes == [f"for --algorithm {name}: {each} {defaults[each]}" for each in defaults]
    given = {each: TrainConfig().as_dict()[each] for each in defaults}
    if name != "expert_iteration":  # which goes with its own alone
        assert resolve({"algorithm": name} | given)[1] == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--algorithm=pqn", "--clip-eps=0.1"], "--clip-eps goes with --algorithm ppo"),
        (["--ent-coef=0.1", "--algorithm=pqn"], "--algorithm ppo or expert_iteration"),
        (["--simulations=4"], "--simulations goes with --algorithm expert_iteration"),
        (["--algorithm=dqn:None"], "dqn.py has no None"),
        (["--algorithm=nothing_of_mine:PPO"], "there is no module nothing_of_mine"),
        (["--algorithm=a2c"], "must be one of ppo, pqn, expert_iteration, module:Class"),
        (["--algorithm-settings={clip_eps: 1}"], "goes with an --algorithm of your own"),
        (["--algorithm-settings=seven"], 'must be of the form "{name: value}"'),
        (["--algorithm=dqn:DQN", "--algorithm-settings={a: 1}"], "target_interval, got a"),
        (["--algorithm=dqn:DQN", "--algorithm-settings={replay_size: no}"], "replay_size must be"),
    ],
)
def test_a_wrong_algorithm_or_setting_is_said(
    flags: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(DQN.parent)
    monkeypatch.delitem(sys.modules, "dqn", raising=False)
    assert main(["train", "--env=CartPole-v1", "--print-config", *flags]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("    Config = DQNConfig\n", "", "has no Config, a subclass of `AlgorithmConfig`"),
        ('    PER_GAME = ("replay",)\n', "", "has no PER_GAME; see `Algorithm`"),
        ("hyper.epsilon(update)", "hyper.boni", "boni is no setting that an update takes"),
        ('"mean_q", "eps', '"eps', "its SCALARS and the scalars of an update differ in mean_q"),
        ("DQNState(params=params", "DQNState(params=no_params", "dqn.py:"),
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
    assert right in DQN.read_text()
    (tmp_path / "dqn.py").write_text(DQN.read_text().replace(right, wrong))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "dqn", raising=False)
    small = ["--num-envs=2", "--num-steps=2", "--num-minibatches=1", "--hidden-dim=4", "--no-wandb"]
    flags = ["--env=CartPole-v1", "--algorithm=dqn:DQN", *small]
    assert main(["train", *flags, "--total-timesteps=4"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "algorithm dqn:DQN: " in line
    assert words in line
