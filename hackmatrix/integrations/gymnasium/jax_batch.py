"""A batch of games for a vector environment, played by the JAX engine."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
from hackmatrix.core.devices.mesh import SHARDED, devices_for, on_devices, use_all_cores
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.hackmatrix import EnvState, HackMatrixEnv
from hackmatrix.environments.hackmatrix.observations import COMPACT, PLANES, layout_of, planes
from hackmatrix.game.engine.state import State
from hackmatrix.integrations.gymnasium.batches import BatchSettings, BatchStep, Begun

Array = jax.Array


class _Games(NamedTuple):
    """The games between two steps, on the devices."""

    state: EnvState
    record: Array  # uint8[N, RECORD_SIZE]
    waiting: Array  # bool[N], the game is over, and the next step begins another


@with_jax_defaults
class JaxBatch:
    """Plays N games; see `batches.Batch`. The first call of each program compiles or loads it."""

    def __init__(self, settings: BatchSettings) -> None:
        use_all_cores()
        enable_compilation_cache()
        num_envs, self._observation, max_episode_steps, self._mode, reward = settings
        self._tells_final = self._mode == AutoresetMode.SAME_STEP
        self._env = HackMatrixEnv(
            layout="classic" if self._observation == "dict" else layout_of(self._observation),
            max_episode_steps=max_episode_steps,
            auto_reset=self._mode != AutoresetMode.DISABLED,
            reward=reward,
        )
        mesh = devices_for(num_envs)
        self._begin = on_devices(self._begin_games, mesh, SHARDED, SHARDED)
        self._play = on_devices(self._play_games, mesh, SHARDED, SHARDED, donate_argnums=0)
        self._replace = on_devices(_choose, mesh, SHARDED, SHARDED)
        self._observed = jax.jit(self._observe)

    def begin(self, streams: NDArray[np.uint32]) -> Begun:
        """Begins the first game of each stream."""
        games, mask, observation = self._begin(streams)
        return Begun(games, np.array(mask), np.array(observation))

    def replace(
        self, chosen: NDArray[np.bool_], begun: Begun, games: _Games, mask: NDArray[np.bool_]
    ) -> Begun:
        """The games, of which those that are chosen have just begun."""
        both, masks = self._replace(chosen, begun[:2], (games, mask))
        return Begun(both, np.array(masks), np.array(self._observed(both.record)))

    def play(self, games: _Games, actions: NDArray[np.int32]) -> tuple[_Games, BatchStep]:
        """Takes an action in each game; `games` is used up."""
        after, taken = self._play(games, actions)
        # Copies, as nobody may write to JAX's own memory.
        step: BatchStep = jax.tree.map(np.array, taken._replace(final_observation=None))
        if self._tells_final and (step.terminated | step.truncated).any():
            step = step._replace(final_observation=np.array(taken.final_observation))
        return after, step

    def state(self, games: _Games, index: int) -> State:
        """One of the games, in the Python engine."""
        state: State = jax.tree.map(lambda x: x[index], games.state).to_engine()
        return state

    def snapshot(self, games: _Games) -> _Games:
        """The games in arrays that can be pickled, and that no step changes."""
        stored: _Games = jax.tree.map(np.array, games)
        return stored

    def _observe(self, records: Array) -> Array:
        if self._observation == COMPACT:
            return records
        seen = jax.vmap(self._env.features)(records)
        return planes(seen) if self._observation == PLANES else seen

    def _begin_games(self, streams: Array) -> tuple[_Games, Array, Array]:
        zero = jnp.zeros_like(streams)
        records, state = jax.vmap(self._env.reset_game)(streams, zero)
        games = _Games(state, records, jnp.zeros(streams.shape, bool))
        return games, jax.vmap(self._env.action_mask)(state), self._observe(records)

    def _play_games(self, games: _Games, actions: Array) -> tuple[_Games, Any]:
        records, state, reward, terminated, truncated, info = jax.vmap(
            self._env.step, in_axes=(None, 0, 0)
        )(None, games.state, actions)
        final = info.pop("final_observation")
        del info["episode_done"]
        shown, waiting = records, games.waiting
        if self._mode == AutoresetMode.NEXT_STEP:
            state, records = _choose(waiting, (games.state, games.record), (state, records))
            info, (reward, terminated, truncated) = _choose(
                waiting,
                jax.tree.map(jnp.zeros_like, (info, (reward, terminated, truncated))),
                (info, (reward, terminated, truncated)),
            )
            shown = _choose(terminated | truncated, final, records)
            waiting = terminated | truncated
        mask = jax.vmap(self._env.action_mask)(state)
        if not self._tells_final:  # where no action counts, a player may choose any
            mask |= (terminated | truncated)[:, None]
        results: dict[str, Any] = {
            "observation": self._observe(shown),
            "final_observation": self._observe(final) if self._tells_final else shown,
            "mask": mask,
            "reward": reward,
            "terminated": terminated,
            "truncated": truncated,
            "facts": info,
        }
        return _Games(state, records, waiting), BatchStep(**results)


def _choose(chosen: Array, these: Any, others: Any) -> Any:
    """For each game the values of `these` where it is chosen, else of `others`."""

    def choose(this: Array, other: Array) -> Array:
        return jnp.where(chosen.reshape(-1, *[1] * (this.ndim - 1)), this, other)

    return jax.tree.map(choose, these, others)
