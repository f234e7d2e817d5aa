"""Times `hackmatrix tune` over many settings of CartPole, beside two other programs.

They are rejax (`--rejax PYTHON`) and Optuna in RL Baselines3 Zoo (`--zoo PYTHON`). All draw from
the same ranges and train with as many steps, games, minibatches and epochs, and a network of the
same size. Starting and compiling is included: each begins with an empty cache. The zoo trains one
seed of a setting, on a core for each process, and fewer settings, as it takes longest.
"""

import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import RESULTS, run_command
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.core.processes import python_module
from hackmatrix.research.bench.options import Options

_SEARCHED = {
    "lr": (1e-4, 1e-2, True),
    "ent_coef": (1e-4, 0.2, True),
    "gamma": (0.95, 0.995, False),
    "gae_lambda": (0.8, 0.99, False),
    "clip_eps": (0.1, 0.3, False),
}
_GAMES, _STEPS, _MINIBATCHES, _EPOCHS, _WIDTH = 16, 64, 4, 4, 64
_REJAX = """\
import json, sys
import jax, jax.numpy as jnp
from rejax import PPO
asked = json.load(sys.stdin)
algorithm = PPO.create(
    env="CartPole-v1", total_timesteps=asked["timesteps"], eval_freq=asked["timesteps"],
    skip_initial_evaluation=True, num_envs=asked["games"], num_steps=asked["steps"],
    num_minibatches=asked["minibatches"], num_epochs=asked["epochs"], max_grad_norm=0.5,
    agent_kwargs={"hidden_layer_sizes": (asked["width"],) * 2, "activation": "relu"},
)
algorithm = algorithm.replace(eval_callback=lambda algorithm, state, rng: ())
names = {"lr": "learning_rate"}
points = {names.get(n, n): jnp.asarray(each) for n, each in asked["points"].items()}
keys = jax.random.split(jax.random.key(0), asked["seeds"])
def trained(point):
    one = algorithm.replace(**point)
    return jax.vmap(lambda key: one.train(key)[0].actor_ts.params)(keys)
jax.block_until_ready(jax.jit(jax.vmap(trained))(points))
"""
_ZOO = """\
import json, sys
from pathlib import Path
from rl_zoo3 import hyperparams_opt
from torch import nn
asked = json.load(sys.stdin)
names = {"lr": "learning_rate", "clip_eps": "clip_range"}
def sampled(trial, n_actions, n_envs, others):
    width = [asked["width"]] * 2
    drawn = {
        names.get(n, n): trial.suggest_float(n, low, high, log=log)
        for n, (low, high, log) in asked["ranges"].items()
    }
    policy = dict(net_arch=dict(pi=width, vf=width), activation_fn=nn.ReLU)
    return {**drawn, "policy_kwargs": policy}
hyperparams_opt.HYPERPARAMS_SAMPLER["ppo"] = sampled
hyperparams_opt.HYPERPARAMS_CONVERTER["ppo"] = dict
batch = asked["games"] * asked["steps"] // asked["minibatches"]
Path("settings.yaml").write_text(json.dumps({"CartPole-v1": dict(
    n_envs=asked["games"], n_timesteps=asked["timesteps"], policy="MlpPolicy",
    n_steps=asked["steps"], batch_size=batch, n_epochs=asked["epochs"],
)}))
from rl_zoo3.train import train
sys.argv = ["train", "--algo", "ppo", "--env", "CartPole-v1", "--conf-file", "settings.yaml",
    "-optimize", "--n-trials", str(asked["trials"]), "--n-evaluations", "1",
    "--eval-episodes", "1", "--sampler", "random", "--pruner", "none", "--device", "cpu",
    "--num-threads", "1", "--no-optim-plots", "--log-folder", "logs", "--verbose", "0"]
train()
"""


@dataclass(frozen=True)
class TuningOptions(Options):
    """The options of the command."""

    output: Path = option(RESULTS, "folder for the figures")
    num_trials: int = option(100, "settings", at_least=1)
    num_seeds: int = option(3, "agents of each", at_least=1)
    total_timesteps: int = option(50_000, "actions of an agent", at_least=1)
    jobs: int = option(2, "processes", at_least=1)
    together: int = option(4, "trials that each process trains at once", at_least=2)
    rejax: Path | None = option(None, "Python interpreter with rejax, to measure it too")
    zoo: Path | None = option(None, "Python interpreter with rl_zoo3, to measure it too")
    zoo_trials: int = option(8, "settings that the zoo trains, with one seed", at_least=1)


class Took(NamedTuple):
    """The time that the trainings of one program took."""

    trainings: int
    seconds: float
    cpu_seconds: float  # of all cores


class Times(NamedTuple):
    """Times by name of the program."""

    options: TuningOptions
    took: dict[str, Took]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        left_out = ("json", "output", "rejax", "zoo", "zoo_trials")
        facts = {n: v for n, v in vars(self.options).items() if n not in left_out}
        took = {name: each._asdict() for name, each in self.took.items()}
        return {**facts, "took": took, **machine.machine(), "versions": machine.versions("gymnax")}

    def text(self) -> str:
        """The figures as text."""
        of = self.options
        lines = [f"{of.num_trials} settings x {of.num_seeds} seeds x {of.total_timesteps:,} steps"]
        for name, each in self.took.items():
            lines.append(
                f"{name:<16}{each.trainings:5} trainings {each.seconds:8.1f} s, "
                f"CPU {each.cpu_seconds:8.1f} s, {each.seconds / each.trainings:6.2f} s each"
            )
        facts = self.as_dict()
        return "\n".join([*lines, machine.line(facts, facts["versions"])])


def measure(options: TuningOptions) -> Times:
    """Trains everything; writes `tuning.json`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        took = {"hackmatrix tune": _of_tune(options, folder)}
        if options.rejax is not None:
            took["rejax"] = _of_rejax(options, options.rejax, folder)
        if options.zoo is not None:
            took["Optuna with zoo"] = _of_zoo(options, options.zoo, folder)
    result = Times(options, took)
    options.output.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result.as_dict(), indent=1) + "\n"
    (options.output / "tuning.json").write_text(text)
    return result


def _of_tune(options: TuningOptions, folder: Path) -> Took:
    settings = {
        "model": {"hidden_dim": _WIDTH, "num_layers": 2},
        "environment": {"name": "CartPole-v1", "num_envs": _GAMES},
        "training": {
            "total_timesteps": options.total_timesteps,
            "num_steps": _STEPS,
            "num_minibatches": _MINIBATCHES,
            "update_epochs": _EPOCHS,
        },
    }
    ranges = {
        n: {"low": low, "high": high, "log": log} for n, (low, high, log) in _SEARCHED.items()
    }
    (folder / "settings.yaml").write_text(json.dumps(settings))  # JSON is YAML
    (folder / "space.yaml").write_text(json.dumps({"training": ranges}))
    counts = {
        "num-trials": options.num_trials,
        "num-seeds": options.num_seeds,
        "jobs": options.jobs,
        "together": options.together,
    }
    command = python_module(
        *("hackmatrix", "tune", "--config", f"{folder}/settings.yaml"),
        *("--search-space", f"{folder}/space.yaml", "--output-dir", f"{folder}/search"),
        *("--sampler", "random", "--seed", "0", "--no-pruning", "--fresh-seeds", "0", "--json"),
        *(word for name, count in counts.items() for word in (f"--{name}", str(count))),
    )
    took = _timed([command], "", folder, options.num_trials * options.num_seeds)
    report = json.loads((folder / "search" / "report.json").read_text())
    ends = report["samplers"]["random"]["trials_by_state"]
    if ends != {"complete": options.num_trials}:
        raise UserError(f"not all trials were completed: {ends}")
    return took


def _of_rejax(options: TuningOptions, python: Path, folder: Path) -> Took:
    import numpy as np

    random = np.random.default_rng(0)
    points = {}
    for name, (low, high, is_log) in _SEARCHED.items():
        ends = np.log([low, high]) if is_log else np.array([low, high])
        drawn = random.uniform(ends[0], ends[1], options.num_trials)
        points[name] = (np.exp(drawn) if is_log else drawn).tolist()
    asked = json.dumps({"points": points, "seeds": options.num_seeds, **_sizes(options)})
    trainings = options.num_trials * options.num_seeds
    return _timed([[str(python.absolute()), "-c", _REJAX]], asked, folder, trainings)


def _of_zoo(options: TuningOptions, python: Path, folder: Path) -> Took:
    each = math.ceil(options.zoo_trials / options.jobs)
    asked = json.dumps({"ranges": _SEARCHED, "trials": each, **_sizes(options)})
    command = [str(python.absolute()), "-c", _ZOO]
    return _timed([command] * options.jobs, asked, folder, each * options.jobs)


def _sizes(options: TuningOptions) -> dict[str, int]:
    """What all settings have in common."""
    return {
        "timesteps": options.total_timesteps,
        "games": _GAMES,
        "steps": _STEPS,
        "minibatches": _MINIBATCHES,
        "epochs": _EPOCHS,
        "width": _WIDTH,
    }


def _timed(commands: Sequence[Sequence[str]], given: str, folder: Path, trainings: int) -> Took:
    """The time of commands that run side by side, each in an empty folder with an empty cache."""
    cache = tempfile.mkdtemp(dir=folder)
    environment: Mapping[str, str] = {**os.environ, "JAX_COMPILATION_CACHE_DIR": cache}
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            text=True,
            env=environment,
            stdout=subprocess.DEVNULL,
            cwd=tempfile.mkdtemp(dir=folder),
        )
        for command in commands
    ]
    for each in running:
        assert each.stdin is not None
        each.stdin.write(given)
        each.stdin.close()
    codes = [each.wait() for each in running]
    if any(codes):
        raise UserError(f"{commands[0][0]} failed; its words are above")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(trainings, time.monotonic() - began, cpu)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "tuning",
        measure,
        TuningOptions,
        argv,
        purpose="Times a search over many settings of CartPole, beside rejax and the zoo.",
        example="--num-trials 10\n      a quicker look",
    )


if __name__ == "__main__":
    sys.exit(main())
