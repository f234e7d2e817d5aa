"""Writes games of a data set for Minari: kilobytes a step, where the data set has a byte."""

import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
import minari
import numpy as np
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_dataset import parse_dataset_id
from minari.storage import get_dataset_path

from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.environments.interface.environment import Environment, optional_members
from hackmatrix.integrations.gymnasium.observation_spaces import arrange_record, space_of
from hackmatrix.research.datasets.folder import DataSet, Shard
from hackmatrix.research.datasets.jax_replay import ReplayBatch, Replayer, data_environment

_GAMES_AT_ONCE = 64  # games whose observations are in memory

Arrange = Callable[[Any], Any]  # an episode's observations [T + 1, ...] as Minari takes them


class MinariLimits(NamedTuple):
    """The part of a data set to write: its first games, whole ones."""

    episodes: int
    steps: int


class MinariExport(NamedTuple):
    """The amount that was written."""

    folder: Path
    episodes: int
    steps: int
    size: int  # bytes


def export(
    data: DataSet, environment: str, name: str, layout: str, limits: MinariLimits
) -> MinariExport:
    """Writes games as a new data set of Minari, where Minari keeps its own.

    Episode i is game i. Its infos have `action_mask`, int8[T + 1, A]: the valid actions before each
    action, and none after the last. Its metadata have `seed`, the stream, and `options`, the
    episode of the stream: `reset` of HackMatrix in Gymnasium takes both, and starts the same game.

    Args:
        data: the data set.
        environment: its id.
        name: id of the new data set, such as "hackmatrix/scripted-v0".
        layout: of HackMatrix's observations, see `space_of`.
        limits: how much.

    Raises:
        UserError: the id is not one of Minari's, or taken; or the observations have no space.
        DamagedError: the data set is damaged.
    """
    env = data_environment(environment)
    space, arrange = _observations(env, environment, layout)
    with _new_folder(name) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about authors and permanent links
        dataset = minari.create_dataset_from_buffers(
            name,
            _episodes(data, env, arrange, limits),
            env=_gymnasium_env(environment, layout),
            observation_space=space,
            action_space=spaces.Discrete(env.num_actions),
            algorithm_name=data.facts.agent,
            description=f"{environment}: games of {data.facts.agent}, seed {data.facts.seed}",
            data_format="arrow",
        )
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return MinariExport(folder, int(dataset.total_episodes), int(dataset.total_steps), size)


@contextmanager
def _new_folder(name: str) -> Iterator[Path]:
    """Where Minari will keep a data set; removed if something is raised."""
    try:
        parse_dataset_id(name)
    except (ValueError, TypeError):  # the second for an id without a version
        raise UserError(
            f"{name}: an id of Minari is name-v0 or namespace/name-v0, in letters, digits, - and _"
        ) from None
    folder = get_dataset_path(name)
    if folder.exists():
        raise UserError(f"{name}: Minari has a data set of this name, in {folder}")
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _observations(
    env: Environment, environment: str, layout: str
) -> tuple[spaces.Space[Any], Arrange]:
    """The space of the observations, and how an episode's are made."""
    if environment == ENVIRONMENT_ID:

        def arrange(records: Any) -> Any:
            each = [arrange_record(record.tobytes(), layout) for record in records]
            return jax.tree.map(lambda *x: np.stack(x), *each)

        return space_of(layout), arrange
    space = optional_members(env).observation_space
    if space is None:
        raise UserError(f"{environment} has no observation_space, which Minari needs")
    low, high = (np.broadcast_to(bound, space.shape) for bound in (space.low, space.high))
    dtype = space.dtype.type
    return spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype), lambda arrays: arrays


def _gymnasium_env(environment: str, layout: str) -> gymnasium.Env[Any, Any] | None:
    """The environment for Minari's `recover_environment`; None if Gymnasium does not know it."""
    if environment == ENVIRONMENT_ID:
        return gymnasium.make(environment, observation=layout)
    return gymnasium.make(environment) if environment in gymnasium.registry else None


def _episodes(
    data: DataSet, env: Environment, arrange: Arrange, limits: MinariLimits
) -> Iterator[EpisodeBuffer]:
    replayer = Replayer(
        env,
        data.facts.seed,
        min(_GAMES_AT_ONCE, data.facts.games),
        lambda seen, masks: (seen, masks),
    )
    for shard in data.first(limits.episodes, limits.steps):
        for batch in replayer.playable_batches(shard, data.path):
            for column in range(len(batch.games)):
                yield _episode(shard, batch, column, arrange, data.facts.seed)


def _episode(
    shard: Shard, batch: ReplayBatch, column: int, arrange: Arrange, stream: int
) -> EpisodeBuffer:
    length = int(batch.lengths[column])
    seen, masks = jax.tree.map(lambda x: x[:length, column], batch.observed)
    observations = jax.tree.map(
        lambda before, last: np.concatenate([before, last[column][None]]),
        seen,
        batch.final_observations,
    )
    ends = np.zeros(length, bool)
    terminated, truncated = ends.copy(), ends.copy()
    (terminated if shard.terminated[batch.games[column]] else truncated)[-1] = True
    masks = np.concatenate([masks, np.zeros_like(masks[:1])]).astype(np.int8)
    number = shard.first + int(batch.games[column])
    return EpisodeBuffer(
        id=number,
        seed=stream,
        options={"episode": number},
        observations=arrange(observations),
        actions=batch.actions[:length, column].astype(np.int64),
        rewards=batch.rewards[:length, column],
        terminations=terminated,
        truncations=truncated,
        infos={"action_mask": masks},
    )
