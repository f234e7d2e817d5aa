"""Several environments as one: each game is of one task, and stays so.

A game's state holds a state of each task, of which one is under way. `jax.vmap` of `step` steps
each task in its own games only (`stepping_some`).
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap

from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.core.version import TOGETHER
from hackmatrix.environments.checked_report import report_of
from hackmatrix.environments.interface.environment import (
    Environment,
    PyTree,
    Step,
    StepRecord,
    optional_members,
)
from hackmatrix.environments.interface.metric import Over
from hackmatrix.environments.interface.report import Breakdown, Column, PlayedGames
from hackmatrix.environments.interface.spaces import Discrete, StepSpec, trace_spec
from hackmatrix.environments.task_metrics import (
    further_metrics,
    measured_metrics,
    metrics_of_task,
    name_in,
)

# --- Steps those games of a batch that are of one task, so that no other is computed --------------


Array = jax.Array
Stepping = Callable[[Array, PyTree, Array], Any]  # key, state, action -> results, state the second


def stepping_some(step: Stepping, parts: int) -> Callable[[Array, Array, PyTree, Array], Any]:
    """Makes `step` take one more argument, a bool: whether this game takes its step.

    If not, its state stays, and its other results are zeros or meaningless. `jax.vmap` of it
    gathers the games that take it, one of `parts` equal shares of the batch at a time, until all of
    them have: once, if as many games are of each task.
    """

    @custom_vmap
    def step_some(takes: Array, key: Array, state: PyTree, action: Array) -> Any:
        observation, after, *others = step(key, state, action)
        after = jax.tree.map(lambda new, old: jnp.where(takes, new, old), after, state)
        return observation, after, *others

    @step_some.def_vmap
    def step_batch(size: int, batched: Any, *arguments: Any) -> Any:
        takes, *games = jax.tree.map(
            lambda x, is_batched: x if is_batched else jnp.broadcast_to(x, (size, *x.shape)),
            arguments,
            tuple(batched),
        )
        results = _step_games(jax.vmap(step), takes, tuple(games), share=-(-size // parts))
        return results, jax.tree.map(lambda _: True, results)

    return step_some


def _step_games(step: Any, takes: Array, games: tuple[Any, ...], share: int) -> Any:
    """The results of the games [N] that `takes` names, `share` of them at a time."""
    observation, _, *others = jax.eval_shape(step, *games)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), (observation, others))
    start = takes, (zeros[0], games[1], *zeros[1])

    def go_on(progress: Any) -> Any:
        left, results = progress
        (chosen,) = jnp.nonzero(left, size=share, fill_value=len(left))  # beyond the last: dropped
        some = jax.tree.map(lambda x: x[jnp.minimum(chosen, len(left) - 1)], games)
        results = jax.tree.map(
            lambda all_, new: all_.at[chosen].set(new, mode="drop"), results, tuple(step(*some))
        )
        return left.at[chosen].set(False, mode="drop"), results

    return jax.lax.while_loop(lambda progress: jnp.any(progress[0]), go_on, start)[1]


# --- Several environments as one: each game is of one task, and stays so --------------------------


class TaskObservation(NamedTuple):
    """An observation."""

    task: Array  # int32, which task it is of
    of_tasks: tuple[PyTree, ...]  # of each task what its features are made from; zeros elsewhere


class TaskState(NamedTuple):
    """A game of one task."""

    task: Array  # int32
    of_tasks: tuple[PyTree, ...]  # a state of each task; only that of `task` changes
    episode_return: Array  # float32, sum of the episode's rewards so far
    episode_length: Array  # int32, number of its steps so far


@with_jax_defaults
class MultiTask:
    """The environments with these ids, as tasks of one agent.

    Actions are numbered from 0 in each task, and masked beyond its own. The features are those of
    all tasks one after another, 0 except those of the game's task, and the task as one-hot vector.
    A linear layer of them is therefore an encoder for each task plus a vector for each task.
    """

    def __init__(self, envs: Sequence[Environment]) -> None:
        """Puts environments together.

        Raises:
            UserError: two have the same id.
        """
        self.envs = tuple(envs)
        self._members = [optional_members(env) for env in envs]
        self.tasks = tuple(members.id for members in self._members)
        if len(set(self.tasks)) < len(self.tasks):
            raise UserError(f"{TOGETHER.join(self.tasks)}: names a task twice")
        self.id = TOGETHER.join(self.tasks)
        self.num_actions = max(env.num_actions for env in envs)
        self.action_space = Discrete(self.num_actions)
        limits = [members.max_episode_steps for members in self._members]
        self.max_episode_steps = None if None in limits else max(x for x in limits if x)
        self.never_truncates = all(members.never_truncates for members in self._members)
        sizes = [env.feature_size for env in envs]
        self.feature_size = sum(sizes) + len(sizes)
        self.feature_owners = np.zeros((len(sizes), self.feature_size), np.float32)
        for owned, size, end in zip(self.feature_owners, sizes, np.cumsum(sizes), strict=True):
            owned[end - size : end] = 1
        self.metrics = tuple(
            metric
            for name, members in zip(self.tasks, self._members, strict=True)
            for metric in (
                *metrics_of_task(name, members.reward_threshold),
                *further_metrics(members.metrics, name),
            )
        )

    @cached_property
    def _steps(self) -> list[Callable[..., Any]]:
        return [stepping_some(_reading(env), len(self.envs)) for env in self.envs]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_steps"}

    def __repr__(self) -> str:
        return f"MultiTask({list(self.envs)!r})"

    @property
    def spec(self) -> StepSpec:
        """Shapes and dtypes of the values that `step` returns."""
        return trace_spec(self)

    def reset(self, key: Array) -> tuple[TaskObservation, TaskState]:
        """Starts a game of a task drawn at random."""
        of_key, of_task = jax.random.split(key)
        return self.reset_task(of_key, jax.random.randint(of_task, (), 0, len(self.envs)))

    def reset_task(self, key: Array, task: Array) -> tuple[TaskObservation, TaskState]:
        """Starts a game of this task, int32."""
        keys = jax.random.split(key, len(self.envs))
        return self._begin(task, [env.reset(k) for env, k in zip(self.envs, keys, strict=True)])

    def reset_game(self, stream: Array, episode: Array) -> tuple[TaskObservation, TaskState]:
        """Starts the game of this stream and episode (uint32); the tasks take turns."""
        key = jax.random.fold_in(jax.random.key(stream, impl="threefry2x32"), episode)
        task = (episode % len(self.envs)).astype(jnp.int32)
        starts = [
            env.reset(key) if members.reset_game is None else members.reset_game(stream, episode)
            for env, members in zip(self.envs, self._members, strict=True)
        ]
        return self._begin(task, starts)

    def step(self, key: Array, state: TaskState, action: Array) -> Step:
        """Takes an action of the game's task; see `Environment`.

        `info` has `task`, return and length of the episode with this step, and `of_tasks`, what
        each task's `step` returned: it means something for the game's task only.
        """
        action = jnp.int32(action)  # a host with 64 bits gives an int64
        keys = jax.random.split(key, len(self.envs))
        steps = [
            step(state.task == number, k, of_task, action)
            for number, (step, k, of_task) in enumerate(
                zip(self._steps, keys, state.of_tasks, strict=True)
            )
        ]
        observations, states, finals, *outcomes, infos = zip(*steps, strict=True)
        reward, terminated, truncated = (self._of(state.task, each) for each in outcomes)
        ended = terminated | truncated
        episode_return, episode_length = state.episode_return + reward, state.episode_length + 1
        info = {
            "final_observation": self._observe(state.task, finals),
            "task": state.task,
            "episode_return": episode_return,
            "episode_length": episode_length,
            "of_tasks": infos,
        }
        after = TaskState(
            task=state.task,
            of_tasks=states,
            episode_return=jnp.where(ended, 0, episode_return),
            episode_length=jnp.where(ended, 0, episode_length),
        )
        return self._observe(state.task, observations), after, reward, terminated, truncated, info

    def action_mask(self, state: TaskState) -> Array:
        """bool[num_actions], the valid actions of the game's task."""
        return self._of(
            state.task,
            [
                jnp.pad(env.action_mask(of_task), (0, self.num_actions - env.num_actions))
                for env, of_task in zip(self.envs, state.of_tasks, strict=True)
            ],
        )

    def features(self, observation: TaskObservation) -> Array:
        """float32[feature_size], see the class; the last ones are the task."""
        of_tasks = [
            jnp.where(observation.task == number, _features(env, seen), 0)
            for number, (env, seen) in enumerate(zip(self.envs, observation.of_tasks, strict=True))
        ]
        return jnp.concatenate([*of_tasks, jax.nn.one_hot(observation.task, len(self.envs))])

    def measure(self, step: StepRecord) -> dict[str, Any]:
        """The values of one step by metric: those of the game's task count."""
        values: dict[str, Any] = {}
        for task, (name, members) in enumerate(zip(self.tasks, self._members, strict=True)):
            counts = step.info["task"] == task
            ended = counts & step.ended
            own = (step.info["episode_return"], step.info["episode_length"])
            for metric, value in zip(metrics_of_task(name), own, strict=False):
                values[metric.name] = jnp.where(ended, value, 0), ended
            if members.measure is not None:
                measured = members.measure(self._record(task, step))
                for metric in measured_metrics(members.metrics):
                    weight = ended if metric.over is Over.EPISODES else counts
                    values[name_in(name, metric)] = _chances(measured[metric.name], weight)
        return values

    def report(self, games: PlayedGames) -> list[Column | Breakdown]:
        """Return and length for each task, and what the tasks' own reports say."""
        parts: list[Column | Breakdown] = []
        for number, (name, env) in enumerate(zip(self.tasks, self.envs, strict=True)):
            chosen = np.asarray(games.info["task"]) == number
            if not chosen.any():
                continue
            of_task = self._games_of_task(number, games, chosen)
            parts += [
                Column(f"{name} {what}", f"task/{name}/mean_{what}", values, chosen=chosen)
                for what, values in (("return", of_task.returns), ("length", of_task.lengths))
            ]
            for each in report_of(env, of_task):
                told = each._replace(title=f"{name} {each.title}", key=f"task/{name}/{each.key}")
                if isinstance(told, Column):
                    interval = f"task/{name}/{each.interval_key}"  # type: ignore[union-attr]
                    told = told._replace(ci_key=interval, chosen=_among(chosen, told.chosen))
                parts.append(told)
        return parts

    def _begin(
        self, task: Array, starts: Sequence[tuple[PyTree, PyTree]]
    ) -> tuple[TaskObservation, TaskState]:
        read = [_read(env, first) for env, (first, _) in zip(self.envs, starts, strict=True)]
        states = tuple(state for _, state in starts)
        state = TaskState(jnp.int32(task), states, jnp.float32(0), jnp.int32(0))
        return self._observe(state.task, read), state

    def _of(self, task: Array, values: Sequence[Array]) -> Array:
        """The value that is the task's."""
        value = values[0]
        for number, other in enumerate(values[1:], start=1):
            value = jnp.where(task == number, other, value)
        return value

    def _observe(self, task: Array, observations: Sequence[PyTree]) -> TaskObservation:
        def of_task(index: int, observation: PyTree) -> PyTree:
            plays = task == index
            return jax.tree.map(lambda x: jnp.where(plays, x, jnp.zeros_like(x)), observation)

        return TaskObservation(task, tuple(of_task(*each) for each in enumerate(observations)))

    def _record(self, task: int, step: StepRecord) -> StepRecord:
        """The step as the task's `measure` takes it."""
        actions = self.envs[task].num_actions
        return step._replace(
            action=jnp.minimum(step.action, actions - 1),
            mask=step.mask[:actions],
            previous_mask=step.previous_mask[:actions],
            info=step.info["of_tasks"][task],
        )

    def _games_of_task(self, task: int, games: PlayedGames, chosen: Any) -> PlayedGames:
        """The chosen games as the task's `report` takes them."""
        of_task = jax.tree.map(lambda x: x[chosen], games)
        info = dict(of_task.info["of_tasks"][task])
        return of_task._replace(
            actions=of_task.actions[:, : self.envs[task].num_actions],
            final_observation=info.pop("final_observation"),
            info=info,
        )


def _read(env: Environment, observation: PyTree) -> PyTree:
    """The input of features: integers, where the environment offers them."""
    integers = optional_members(env).feature_integers
    return observation if integers is None else integers(observation)


def _reading(env: Environment) -> Stepping:
    """The environment's step with observations as `_read` makes them, the final one third."""

    def step(key: Array, state: PyTree, action: Array) -> Any:
        observation, after, *results, info = env.step(key, state, action)
        final = _read(env, info["final_observation"])
        return _read(env, observation), after, final, *results, info

    return step


def _features(env: Environment, read: PyTree) -> Array:
    integers = optional_members(env).feature_integers
    return env.features(read) if integers is None else read * integers.scales


def _among(chosen: Any, of_those: Any) -> Any:
    """Which of all games, bool[N]: of the chosen ones those that `of_those` names, None for all."""
    if of_those is None:
        return chosen
    among = chosen.copy()
    among[chosen] = of_those
    return among


def _chances(value: Any, counts: Array) -> tuple[Array, Array]:
    """A measured number, or pair (number, chances), where it counts."""
    number, chances = value if isinstance(value, tuple | list) else (value, 1.0)
    return jnp.where(counts, number, 0), jnp.where(counts, chances, 0)
