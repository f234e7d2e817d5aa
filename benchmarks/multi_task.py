"""One agent on several tasks against an agent for each, at equal steps and at equal seconds."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.command import run_command
from hackmatrix.agents.roster.batch_players import network_player
from hackmatrix.core import machine
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.environments.interface.environment import Environment, PyTree, optional_members
from hackmatrix.learning.ppo import seeds
from hackmatrix.learning.ppo.trainer import Trainer
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import read_config, with_num_minibatches
from hackmatrix.research.bench.options import Options
from hackmatrix.research.evaluation.games import Games
from hackmatrix.research.evaluation.limits import Limits
from hackmatrix.research.evaluation.text_table import aligned

TOGETHER, STEPS, SECONDS = "one agent", "single, equal steps", "single, equal seconds"


@dataclass(frozen=True)
class MultiTaskOptions(Options):
    """The options of the command."""

    config: Path = option(Path("configs/multi_task.yaml"), "settings of the agent of all tasks")
    timesteps: int | None = option(
        None, "steps of the agent of all tasks; those of the file unless given", at_least=1
    )
    num_seeds: int = option(3, "agents of each kind", at_least=1, at_most=1024)
    episodes: int = option(300, "games of each task that each of them plays", at_least=1)


class Trained(NamedTuple):
    """The agents of a configuration."""

    timesteps: int  # of each agent
    seconds: float  # of the processor, of all agents, without compiling
    returns: dict[str, list[float]]  # by task, the mean return of each agent


class Comparison(NamedTuple):
    """The agents of all tasks, and by the way of comparing those of single tasks."""

    num_seeds: int
    episodes: int
    trained: dict[str, list[Trained]]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        trained = {kind: [each._asdict() for each in runs] for kind, runs in self.trained.items()}
        about = {"num_seeds": self.num_seeds, "episodes": self.episodes}
        return about | {"trained": trained, **machine.machine(), "versions": _versions()}

    def text(self) -> str:
        """The figures as text: the mean over the agents and that of the worst one."""
        tasks = list(self.trained[TOGETHER][0].returns)
        lines = [["", "steps", "seconds", *tasks]]
        for kind, runs in self.trained.items():
            returns = {task: r for run in runs for task, r in run.returns.items()}
            steps = sum(run.timesteps for run in runs)
            seconds = sum(run.seconds for run in runs) / self.num_seeds
            means = [f"{np.mean(returns[task]):.1f} ({min(returns[task]):.1f})" for task in tasks]
            lines.append([kind, f"{steps:,}", f"{seconds:.1f}", *means])
        title = f"{self.num_seeds} seeds, {self.episodes} games of each task, sampled: mean (worst)"
        return "\n".join([title, aligned(lines), machine.line(self.as_dict(), _versions())])


def measure(options: MultiTaskOptions) -> Comparison:
    """Trains and evaluates all agents.

    Raises:
        UserError: the file can't be read, or is of a single task.
    """
    given = with_num_minibatches(read_config(options.config))
    given |= {"num_seeds": options.num_seeds}
    if options.timesteps is not None:
        given["total_timesteps"] = options.timesteps
    config = TrainConfig.of(**given)
    if (tasks := config.environment.task_list) is None:
        raise UserError(f"{options.config}: is not of several tasks")
    together = _trained(config, options.episodes)
    share = together.timesteps / len(tasks)
    singles = [_trained(_single(config, t, share), options.episodes) for t in tasks]
    longer = share * together.seconds / sum(each.seconds for each in singles)
    as_long = [_trained(_single(config, t, longer), options.episodes) for t in tasks]
    trained = {TOGETHER: [together], STEPS: singles, SECONDS: as_long}
    return Comparison(options.num_seeds, options.episodes, trained)


def _single(config: TrainConfig, task: str, timesteps: float) -> TrainConfig:
    """The settings for one task: as many games of it, minibatches of the same size, as deep."""
    tasks = len(config.environment.task_list or ())
    return config.but(
        multi_task=False,
        task_list=None,
        env=task,
        architecture="mlp",
        num_layers=config.network.num_layers + 1,
        num_envs=config.ppo.num_envs // tasks,
        num_minibatches=max(1, config.ppo.num_minibatches // tasks),
        total_timesteps=round(timesteps),
    )


def _trained(config: TrainConfig, episodes: int) -> Trained:
    env = config.environment.make()
    trainer = Trainer(env, config.ppo, config.network, agents=config.run.seeds)
    state = trainer.run(trainer.start(config.run.seed), 0)
    jax.block_until_ready(state.params)
    before = time.process_time()
    state = trainer.run(state, config.ppo.course.num_updates)
    jax.block_until_ready(state.params)
    seconds = time.process_time() - before
    params = jax.device_get(trainer.network_params(state))
    returns = _evaluated(env, trainer, params, episodes)
    print(f"{config.environment.name}: {seconds:.0f} s, {returns}", file=sys.stderr, flush=True)
    return Trained(config.ppo.course.num_updates * config.ppo.batch_size, seconds, returns)


def _evaluated(
    env: Environment, trainer: Trainer, params: PyTree, episodes: int
) -> dict[str, list[float]]:
    """The mean return of each agent, by task."""
    members = optional_members(env)
    tasks = members.tasks or (members.id,)
    player = network_player("", trainer.network, None, greedy=False)
    games = Games(env, player, Limits(episodes * len(tasks)))
    returns: dict[str, list[float]] = {task: [] for task in tasks}
    for agent in seeds.split(params, len(trainer.agents)):
        played = games.play(agent)
        for number, task in enumerate(tasks):  # they take turns
            returns[task].append(float(played.returns[number :: len(tasks)].mean()))
    return returns


def _versions() -> dict[str, Any]:
    return machine.versions("gymnax")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "multi_task",
        measure,
        MultiTaskOptions,
        argv,
        purpose="Compares an agent of several tasks with an agent for each.",
        example="--timesteps 1500000\n      a quarter as long",
    )


if __name__ == "__main__":
    sys.exit(main())
