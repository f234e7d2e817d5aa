"""The studies of the recipe and of networks: each variation is a config that differs as it says."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from paths import CONFIGS

from benchmarks.learner_parts import exchanged
from benchmarks.networks import NETWORKS
from benchmarks.recipe import PART, STUDY
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.agents.networks.network import make_network
from hackmatrix.core.compiled import compilation_cache, kept_programs
from hackmatrix.environments.registry import make_environment
from hackmatrix.learning.ppo import trainer
from hackmatrix.learning.ppo import update as ppo
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve

VARIATIONS = [changed for group in (*STUDY.values(), NETWORKS) for changed in group.values()]


@pytest.mark.parametrize("changed", VARIATIONS, ids=str)
def test_a_variation_is_a_config(changed: dict[str, Any]) -> None:
    given = {name: value for name, value in changed.items() if name != PART}
    settings, _ = resolve(dict(given), read_config(CONFIGS / "best.yaml"))
    assert {name: getattr(settings, name) for name in given} == given


def test_muon_steps_along_orthogonal_matrices() -> None:
    config, _ = resolve({}, {})
    params = {"kernel": jnp.zeros((8, 8))}
    gradient = {"kernel": jax.random.normal(jax.random.key(0), (8, 8))}
    evenness = []
    for part in ("muon", None):
        with exchanged(part):
            optimizer = ppo.optimizer(config)
        directions, _ = optimizer.update(gradient, optimizer.init(params), params)
        assert jnp.sum(directions["kernel"] * gradient["kernel"]) > 0
        sizes = jnp.linalg.svd(directions["kernel"], compute_uv=False)
        evenness.append(float(sizes[-1] / sizes[0]))
    assert evenness[0] > 0.6 > 0.3 > evenness[1]


def test_the_symlog_of_returns_is_predicted() -> None:
    returns = jnp.array([-30.0, 0.0, 2.0, 30.0])
    with exchanged("symlog"):
        network = trainer.make_network(make_environment("CartPole-v1"), NetworkConfig())
        loss = ppo.value_loss
    assert loss(returns, returns) == 0
    assert loss(2 * returns, returns) == pytest.approx(
        0.5 * np.log([61 / 31, 5 / 3]) ** 2 @ [2, 1] / 4
    )
    params = network.init(jax.random.key(0))
    plain = make_network(make_environment("CartPole-v1"), NetworkConfig())
    seen = jnp.ones((3, 4))
    value, told = plain(params, seen)[1], network(params, seen)[1]
    np.testing.assert_allclose(np.log1p(np.abs(told)), np.abs(value), rtol=1e-5)


def test_programs_of_exchanged_parts_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_programs, "_folder", tmp_path)  # of a run before
    with exchanged("muon"):
        assert kept_programs._folder is None
        compilation_cache.keep_programs_in(tmp_path)
        assert kept_programs._folder is None
