"""Checks a checkpoint or a file of params, from its bytes to the games it was evaluated in."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hackmatrix.core.errors import UserError
from hackmatrix.core.files import DamagedError
from hackmatrix.learning.run.checkpoint_params import params_of
from hackmatrix.research.exchange.contents import params_at
from hackmatrix.runs.checkpoints import SCORE, check_checkpoint, score_in
from hackmatrix.runs.folder import CONFIG
from hackmatrix.runs.params import Exported

if TYPE_CHECKING:
    from hackmatrix.learning.settings.config import TrainConfig
    from hackmatrix.research.evaluation.report import Report

_GAMES = 8  # whose first observations go through the network
_LEARNED = ("params.", "opt_state.", "feature_scale.", "reward_scale.")  # arrays of a checkpoint


class Check(NamedTuple):
    """One check: passed, failed, or left out."""

    name: str
    passed: bool | None
    text: str


def verify(path: Path, *, evaluate: bool, own: str | None = None) -> Iterator[Check]:
    """The checks of a checkpoint or a file, each as soon as it is done; the first failure ends it.

    Args:
        path: a checkpoint's folder or a file of params.
        evaluate: whether to play the games of a recorded evaluation again.
        own: the environment that the user names; code of one's own is run for no file alone.
    """
    try:
        if path.is_dir():
            checkpoint = check_checkpoint(path)
            games: int | None = checkpoint.facts.config["seed"]
            size = sum(file.stat().st_size for file in path.rglob("*"))
            yield Check("checksums", True, f"{size / 1e6:.1f} MB")
            arrays = checkpoint.read_arrays()
            yield Check("shapes", True, f"{len(arrays)} arrays")
            yield _finite(arrays)
            agents = params_of(checkpoint, arrays)
        else:
            agents = params_at(path)
            games = _seed_of_games(agents[0])
            yield Check("read", True, f"params of {path.suffix[1:]}, all finite")
    except UserError as error:
        yield Check("checksums" if isinstance(error, DamagedError) else "read", False, str(error))
        return
    for k, agent in enumerate(agents):
        which = f" {k}" if len(agents) > 1 else ""
        passed = True
        for answer in _answers(agent, which, own):
            yield answer
            passed = passed and answer.passed is True
        if evaluate and passed:
            yield _evaluation(agent, games, which)


def _finite(arrays: dict[str, np.ndarray]) -> Check:
    """Whether all that was learned is finite; games may hold anything."""
    learned = {n: a for n, a in arrays.items() if n.startswith(_LEARNED)}
    for name, array in learned.items():
        if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
            return Check("finite", False, f"{name} holds NaN or infinite values")
    return Check("finite", True, f"{len(learned)} arrays of params and optimizer")


def _answers(agent: Exported, which: str, own: str | None) -> Iterator[Check]:
    """Whether the params fit their network, and what it says about the first observations."""
    from hackmatrix.agents.networks.policy import policy_of

    try:
        policy = policy_of(agent)
        name = policy.environment
        if ":" in name and name != own:
            yield Check(
                f"network{which}", None, f"plays {name:.80}: --env {name:.80} runs its code"
            )
            return
        env, network = policy.make(own)
    except UserError as error:
        yield Check(f"network{which}", False, str(error))
        return
    sizes = f"{env.feature_size} features, {env.num_actions} actions"
    yield Check(f"network{which}", True, f"{policy.config.architecture}, {sizes}")
    import jax

    from hackmatrix.agents.networks.network import encode_observations

    observations, _ = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), _GAMES))
    carry = network.initial_carry(_GAMES)
    logits, values, _ = network(agent.params, encode_observations(network, observations), carry)
    finite = bool(np.isfinite(logits).all() and np.isfinite(values).all())
    text = f"{_GAMES} games, values {float(np.min(values)):.3g} to {float(np.max(values)):.3g}"
    yield Check(f"forward pass{which}", finite, text if finite else "gives NaN or infinity")


def _evaluation(agent: Exported, seed: int | None, which: str) -> Check:
    """Plays the games of the recorded evaluation again and compares the mean return."""
    name = f"evaluation{which}"
    recorded, settings = agent.about.get("evaluation"), agent.about.get("config")
    if not isinstance(recorded, dict) or not isinstance(settings, dict):
        return Check(name, None, "none is recorded")
    if seed is None:
        return Check(name, None, f"the seed of its games is in its run's {CONFIG}, not here")
    if (then := score_in(recorded)) is None:
        return Check(name, False, f"the recorded one has no {SCORE}")
    from hackmatrix.environments.registry import environment_id
    from hackmatrix.learning.settings.resolve import resolve

    try:
        config, _ = resolve({"seed": seed, "num_seeds": 1}, None, settings)
        trained_on = environment_id(config.environment.name)
    except UserError as error:
        return Check(name, False, f"its settings: {error}")
    if trained_on != agent.about.get("environment"):
        return Check(name, False, f"its settings are of {trained_on}")
    report = _player(config)(agent.params)
    now, low, high = report.estimates[0]
    if then == now:
        return Check(name, True, f"{SCORE} {now:.6g} in {report.episodes:,} games, as recorded")
    near = abs(then - now) <= high - low  # four standard errors
    said = f"{SCORE} {now:.6g} in {report.episodes:,} games, recorded {then:.6g}"
    return Check(name, near, f"{said}: {'another device or version' if near else 'not its params'}")


@functools.lru_cache(maxsize=4)  # the checkpoints of a run share a compiled evaluation
def _player(config: "TrainConfig") -> "Callable[[Any], Report]":
    """A function that plays the games of a run's evaluations."""
    from hackmatrix.agents.networks.network import make_network
    from hackmatrix.research.evaluation.jax_agents import make_report

    env = config.environment.make()
    return make_report(env, make_network(env, config.network), config)


def _seed_of_games(agent: Exported) -> int | None:
    """The seed of the games of its evaluation: the run's, which an agent of many does not know."""
    if agent.path.parent.name.startswith("seed_"):
        from hackmatrix.learning.settings.config_file import read_config

        config = agent.path.parent.parent / CONFIG
        return int(read_config(config)["seed"]) if config.is_file() else None
    seed = agent.about.get("config", {}).get("seed")
    return seed if isinstance(seed, int) else None
