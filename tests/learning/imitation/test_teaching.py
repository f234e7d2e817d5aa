"""A search teaches: lessons are the search's opinions of games under way, and networks learn."""

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.agents.networks import distribution
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import make_network
from hackmatrix.agents.networks.policy import Policy, load_policy
from hackmatrix.agents.search.model import Searcher
from hackmatrix.cli.main import main
from hackmatrix.environments.registry import make_environment
from hackmatrix.learning.imitation.search_targets import Lecturer, Lessons
from hackmatrix.learning.imitation.supervised import learn, loss
from hackmatrix.runs.params import save_params

NETWORK = NetworkConfig(hidden_dim=8, num_layers=1)
RUN = {"normalize_rewards": False, "reward": "progress", "gamma": 0.998, "observation": "tactical"}
GAMES, MOVES = 4, 6


def policy() -> Policy:
    network = make_network(make_environment("HackMatrix-v1", "tactical"), NETWORK)
    params: dict[str, Any] = jax.jit(network.init)(jax.random.key(0))
    return Policy(Path("it.npz"), params, NETWORK, "HackMatrix-v1", "tactical", {"config": RUN})


def made_up_lessons(count: int) -> Lessons:
    """The teacher wants the last valid action if the first number is large; numbers are values."""
    rng = np.random.default_rng(2)
    observations = rng.integers(0, 2, (count, 432), np.int8)
    masks = rng.random((count, 28)) < 0.4
    masks[:, [3, 5]] = True
    last = 27 - masks[:, ::-1].argmax(axis=1)
    wanted = np.where(observations[:, 0] == 1, last, masks.argmax(axis=1))
    return Lessons(
        jnp.asarray(observations),
        distribution.pack_mask(jnp.asarray(masks)),
        jax.nn.one_hot(wanted, 28, dtype=jnp.float16),
        jnp.asarray(observations[:, 1], jnp.float32),
    )


def test_a_network_comes_near_its_teacher() -> None:
    _, network = policy().make()
    params, lessons = policy().params, made_up_lessons(600)
    before = loss(network, params, lessons)
    taught, _ = learn(network, params, lessons, lr=1e-2, epochs=30, batch=64, seed=1)
    after = loss(network, taught, lessons)
    assert after.divergence < before.divergence / 2
    assert after.value < before.value / 2


def test_the_divergence_from_oneself_is_zero() -> None:
    _, network = policy().make()
    lessons = made_up_lessons(50)
    mask = distribution.unpack_mask(lessons.mask, 28)
    logits, values, _ = network(policy().params, lessons.observations)
    own = jnp.exp(distribution.log_probabilities(logits, mask))
    parts = loss(network, policy().params, lessons._replace(policy=own, value=values))
    assert parts.divergence == pytest.approx(0, abs=1e-5)
    assert parts.value == 0


@pytest.mark.slow
def test_lessons_are_opinions_of_games_under_way() -> None:
    mine = policy()
    lecturer = Lecturer(Searcher.of(mine, 4), GAMES, weight=3.0, seed=3)
    games, first = lecturer.give(mine.params, lecturer.begin(), MOVES)
    _, second = lecturer.give(mine.params, games, MOVES)
    for lessons in (first, second):
        assert lessons.observations.shape == (GAMES * MOVES, 432)
        allowed = np.asarray(distribution.unpack_mask(lessons.mask, 28))
        wanted = np.asarray(lessons.policy, np.float32)
        assert (wanted[~allowed] == 0).all()
        np.testing.assert_allclose(wanted.sum(axis=1), 1, atol=1e-2)
    assert len(np.unique(np.concatenate([first.observations, second.observations]), axis=0)) > 20


@pytest.mark.slow
def test_the_command_writes_params_that_can_be_taught_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"environment": "HackMatrix-v1", "config": RUN | dataclasses.asdict(NETWORK)}
    save_params(tmp_path / "first.npz", policy().params, about)
    small = [
        "--search",
        "2",
        "--positions",
        "128",
        "--rounds",
        "2",
        "--games",
        "4",
        "--epochs",
        "1",
        "--batch",
        "16",
    ]
    first, second, third = (str(tmp_path / f"{name}.npz") for name in ("first", "second", "third"))
    assert main(["teach", first, second, *small]) == 0
    assert main(["teach", second, third, *small]) == 0
    assert "round 2: 128 positions" in capsys.readouterr().out
    taught = load_policy(Path(third))
    assert taught.about["taught"]["from"] == second
    changed = jax.tree.map(lambda a, b: bool((a != b).any()), taught.params, policy().params)
    assert any(jax.tree.leaves(changed))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["a.npz", "b.txt"], "out must end in .npz, got b.txt"),
        (["a.npz", "none/b.npz"], "none/b.npz: there is no folder none"),
        (
            ["a.npz", "b.npz", "--positions", "900"],
            "--batch 512 is more than the 300 positions of a round",
        ),
    ],
)
def test_wrong_usage_is_told(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["teach", *argv]) == 2
    assert capsys.readouterr().err == f"hackmatrix teach: error: {message}\n"


def test_params_that_are_there_are_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"mine")
    assert main(["teach", str(path), str(path)]) == 2
    assert capsys.readouterr().err == (
        f"hackmatrix teach: error: {path}: exists already: choose another name\n"
    )
    assert path.read_bytes() == b"mine"
