"""Configuration files: their names, their values, and where settings come from."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hackmatrix.core.errors import UserError
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import dump_config, read_config, with_num_minibatches
from hackmatrix.learning.settings.resolve import resolve

# As the users of other trainers write it.
FOREIGN = """
model:
  architecture: "ppo"
  hidden_sizes: [64, 64, 64]
  activation: "tanh"
  learning_rate: 3e-4
environment:
  name: "HackMatrix"
  num_envs: 8
  max_episode_steps: 500
  normalize_observations: true
  normalize_rewards: false
training:
  total_timesteps: 1000000
  batch_size: 256
  n_epochs: 10
  gamma: 0.98
  gae_lambda: 0.9
  clip_range: 0.1
  entropy_coef: 0.01
  value_loss_coef: 0.25
  max_grad_norm: 1
tpu:
  enabled: true
  num_cores: 8
  distributed: true
  gradient_accumulation_steps: 4
logging:
  log_interval: 11
  save_interval: 1000
  eval_interval: 5000
  tensorboard: true
  wandb: false
  checkpoint_dir: "runs"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text)
    return path


def test_the_names_of_other_trainers_are_understood(tmp_path: Path) -> None:
    settings = read_config(written(tmp_path, FOREIGN))
    assert TrainConfig.of(**with_num_minibatches(settings)) == TrainConfig.of(
        architecture="mlp",
        hidden_dim=64,
        num_layers=3,
        activation="tanh",
        lr=3e-4,
        env="HackMatrix",
        num_envs=8,
        max_episode_steps=500,
        normalize_observations=True,
        normalize_rewards=False,
        total_timesteps=1_000_000,
        num_minibatches=4,  # of 8 x 128 transitions, 256 each
        update_epochs=10,
        gamma=0.98,
        gae_lambda=0.9,
        clip_eps=0.1,
        ent_coef=0.01,
        vf_coef=0.25,
        max_grad_norm=1.0,
        tpu=True,
        tpu_cores=8,
        distributed=True,
        gradient_accumulation_steps=4,
        log_interval=11,
        save_interval=1000,
        eval_interval=5000,
        tensorboard=True,
        wandb=False,
        checkpoint_dir=Path("runs"),
    )


@pytest.mark.thorough
@given(
    settings=st.fixed_dictionaries(
        {},
        optional={
            "lr": st.floats(1e-8, 10),
            "num_envs": st.integers(1, 64).map(lambda n: 4 * n),
            "hidden_dim": st.integers(1, 2048),
            "max_episode_steps": st.none() | st.integers(1, 2000),
            "normalize_observations": st.booleans(),
            "dtype": st.sampled_from(["float32", "bfloat16"]),
            "save_interval": st.none() | st.integers(1, 100),
            "checkpoint_dir": st.sampled_from([Path("a"), Path("/b c/d")]),
            "project": st.text("abc: #'\"-äöü", min_size=1),
        },
    )
)
def test_a_saved_configuration_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, settings: dict[str, Any]
) -> None:
    config = TrainConfig.of(**settings)
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    path.write_text(dump_config(config))
    assert resolve({}, read_config(path))[0] == config


def test_tasks_are_read_back_and_bring_their_network(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("environment: {multi_task: true, task_list: [CartPole-v1, HackMatrix]}")
    config, notes = resolve({}, read_config(path))
    assert (config.environment.env, config.environment.name) == (
        "HackMatrix",
        "CartPole-v1+HackMatrix-v1",
    )
    assert (config.network.architecture, notes) == (
        "multi_task",
        ["for --multi-task: architecture multi_task"],
    )
    path.write_text(dump_config(config))
    assert resolve({}, read_config(path)) == (config, [])
    assert resolve({}, None, config.as_dict()) == (config, [])
    assert resolve({"architecture": "mlp"}, read_config(path))[0].network.architecture == "mlp"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("training: {lrr: 1}", "unknown setting training.lrr, did you mean training.lr?"),
        ("model: {clip_range: 1}", "model.clip_range, did you mean training.clip_range?"),
        ("trainng: {lr: 1}", "unknown section trainng, did you mean training?"),
        ("lr: 1", "unknown section lr, there are model, environment, curriculum, training, tpu"),
        ("training: {zzzzzz: 1}", "unknown setting training.zzzzzz, see `hackmatrix train --help`"),
        ("training: {lr: 1, learning_rate: 1}", "training.lr and training.learning_rate mean"),
        ("training: {lr: 1, lr: 2}", "is not a YAML file (lr is given twice)"),
        ("training: {batch_size: 8, num_minibatches: 2}", "training.batch_size and training.num_m"),
        ("logging: {project: 2024-13-45}", "is not a YAML file (month must be in 1..12"),
        ("training: {seed: !!int abc}", "is not a YAML file ("),
        ("training: {seed: " + 5000 * "1" + "}", "is not a YAML file ("),
        (500 * "[", "is not a YAML file ("),
        ("training: {seed: three}", "training.seed must be a number, got 'three'"),
        ("training: {seed: 1.5}", "training.seed must be a whole number, got 1.5"),
        ("training: {seed: true}", "training.seed must be a number, got True"),
        ("training: {lr: null}", "training.lr must be a number, got None"),
        ("training: {device: gpus}", "training.device must be one of auto, cpu, gpu, tpu, got"),
        (
            "model: {architecture: cnn}",
            "architecture must be one of mlp, separate_critic, cells, player_centred, gru, "
            "multi_task, module:function, got 'cnn'",
        ),
        ("training: {lr: -1}", "training.lr must be above 0, got -1.0"),
        ("model: {hidden_sizes: [256, 128]}", "must be a list of equal widths, as [256, 256]"),
        ("logging: {wandb: 1}", "logging.wandb must be true or false, got 1"),
        ("logging: {checkpoint_dir: 3}", "logging.checkpoint_dir must be text, got 3"),
        ("training: 3", "section training must hold names with values, got 3"),
        ("- 1", "the file must hold names with values, got [1]"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line_with_what_was_meant(
    tmp_path: Path, text: str, message: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UserError) as raised:
        read_config(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--config .*nowhere.yaml: No such file"):
        read_config(tmp_path / "nowhere.yaml")


def test_an_empty_file_and_empty_sections_give_nothing(tmp_path: Path) -> None:
    assert read_config(written(tmp_path, "")) == {}
    assert read_config(written(tmp_path, "model:\ntpu: {}\n")) == {}


def test_numbers_may_be_written_as_people_write_them(tmp_path: Path) -> None:
    path = written(tmp_path, "training: {lr: 1e-3, total_timesteps: 1e6, gamma: 1}")
    assert read_config(path) == {"lr": 1e-3, "total_timesteps": 1_000_000, "gamma": 1.0}


def test_flags_go_before_the_file_and_the_file_before_the_checkpoint(tmp_path: Path) -> None:
    in_file = read_config(written(tmp_path, "training: {lr: 2.0, gamma: 0.2}"))
    checkpoint = {"lr": 3.0, "gamma": 0.3, "vf_coef": 0.3, "no_longer_known": 1}
    config, _ = resolve({"lr": 1.0}, in_file, checkpoint)
    assert (config.learning.lr, config.learning.gamma, config.learning.vf_coef) == (1.0, 0.2, 0.3)
    assert config.learning.ent_coef == PPOConfig.ent_coef


def test_settings_of_a_resumed_run_that_this_version_does_not_have_are_left_out() -> None:
    assert resolve({}, None, {"colour": "red", "gamma": 0.5})[0] == TrainConfig.of(gamma=0.5)
    with pytest.raises(UserError, match=r"^architecture of the resumed run must be one of mlp"):
        resolve({}, None, {"architecture": "of the future"})
    assert resolve({"gamma": 0.5}, None, {"gamma": "none"})[0].learning.gamma == 0.5


def test_the_size_of_minibatches_goes_with_the_games_that_flags_give(tmp_path: Path) -> None:
    text = "training: {batch_size: 256}\nenvironment: {num_envs: 8}"
    path = read_config(written(tmp_path, text))
    assert resolve({}, path)[0].learning.num_minibatches == 4
    assert resolve({"num_envs": 32}, path)[0].learning.num_minibatches == 16
    assert resolve({"num_minibatches": 2}, path)[0].learning.num_minibatches == 2
    assert resolve({}, path, {"num_minibatches": 8})[0].learning.num_minibatches == 4
    with pytest.raises(
        UserError, match=r"training.batch_size 256, .* must divide .* 3 x 128 = 384"
    ):
        resolve({"num_envs": 3}, path)


def test_only_what_nobody_gave_is_scaled(tmp_path: Path) -> None:
    in_file = read_config(written(tmp_path, "training: {lr: 1e-3}"))
    config, notes = resolve({"num_envs": 2048}, in_file)
    assert (config.learning.num_minibatches, config.learning.update_epochs, config.learning.lr) == (
        32,
        2,
        1e-3,
    )
    assert notes == [
        "scaled for the batch of 262,144: num_minibatches 4 -> 32",
        "scaled for the batch of 262,144: update_epochs 4 -> 2",
    ]
    again, notes = resolve({}, read_config(written(tmp_path, dump_config(config))))
    assert again == config
    assert notes == []
