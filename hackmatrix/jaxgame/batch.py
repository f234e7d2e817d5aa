"""Many games at once: the only file that knows of a batch axis, which comes first everywhere."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import custom_vmap

from hackmatrix.jaxgame import game
from hackmatrix.jaxgame.loops import GAMES
from hackmatrix.jaxgame.observation import observe
from hackmatrix.jaxgame.stage import begin_stage
from hackmatrix.jaxgame.state import RUNNING, State, select

# A step lays out stages for this share of the games at a time, and goes on until all have theirs.
_STAGES_AT_A_TIME = 1 / 16
_NO_POSITION: Any = None  # an empty tree


@jax.tree_util.register_dataclass
@dataclass(frozen=True, slots=True)
class Step:
    """What one step of n games returns besides their states.

    `over`, `stage` and `score` are those at the end of the step, before a restart.
    """

    parts: jax.Array  # int32[n, 15], reward parts in units of 0.005
    stage_completed: jax.Array  # bool[n], true on the winning step too
    over: jax.Array  # int32[n], RUNNING, WON, DIED or INVALID_ACTION
    stage: jax.Array  # int32[n]
    score: jax.Array  # int32[n]
    observation: jax.Array  # uint8[n, RECORD_SIZE]
    final_observation: jax.Array  # uint8[n, RECORD_SIZE], before a restart


def new_games(stream: jax.Array, episode: jax.Array) -> tuple[State, jax.Array]:
    """Start the games with these names (uint32[n]); returns states and uint8[n, RECORD_SIZE]."""
    state = _map(begin_stage)(_map(game.new_game)(stream, episode))
    return state, _map(observe)(state)


def observations(state: State) -> jax.Array:
    """uint8[n, RECORD_SIZE]: what the players see."""
    return _map(observe)(state)


def step(state: State, action: jax.Array, stops: jax.Array, restarts: bool) -> tuple[State, Step]:
    """Take an action in each game.

    Args:
        state: n games.
        action: int32[n].
        stops: bool[n], games that are truncated after this action.
        restarts: whether a game that has ended or been truncated makes way for the next episode of
            its stream; otherwise one that has ended stays as it is.
    """
    state, outcome = _map(game.step)(state, action)
    over, stage, score = state.over, state.stage, state.player.score
    ended = ((over != RUNNING) | stops) & restarts
    state, observation, final_observation = lay_out(state, outcome.begins_stage, ended)
    return state, Step(
        parts=outcome.parts,
        stage_completed=outcome.stage_completed,
        over=over,
        stage=stage,
        score=score,
        observation=observation,
        final_observation=final_observation,
    )


class _Work(NamedTuple):
    """The loop of `lay_out`; the first three are those of all games."""

    state: State
    observation: jax.Array
    final_observation: jax.Array
    begins: jax.Array  # bool[n], still to begin the next stage
    ended: jax.Array  # bool[n], still to restart, after that


def lay_out(
    state: State, begins: jax.Array, ended: jax.Array
) -> tuple[State, jax.Array, jax.Array]:
    """Begin the stages and the games that are due, a few games at a time, and observe all.

    Args:
        state: n games.
        begins: bool[n], the next stage has to be laid out.
        ended: bool[n], the next game has to be started, after that.

    Returns:
        The states, the observations uint8[n, RECORD_SIZE], and those from before the restarts.
    """
    games = begins.shape[0]
    few = max(1, min(games, 8), int(games * _STAGES_AT_A_TIME))
    saved = state.saved  # no new stage needs them, so they are not moved around
    observation = _map(observe)(state)

    def work(carry: _Work) -> _Work:
        chosen = jnp.nonzero(carry.begins | carry.ended, size=few, fill_value=games)[0]
        part = jax.tree.map(lambda x: x.at[chosen].get(mode="clip"), carry.state)
        restarts = ~carry.begins.at[chosen].get(mode="clip")
        part = select_games(restarts, next_games(part), part)
        part = _map(begin_stage)(part)
        observed = _map(observe)(part)
        unless_restart = jnp.where(restarts, games, chosen)

        def put(values: jax.Array, new: jax.Array) -> jax.Array:
            return values.at[chosen].set(new, mode="drop")

        return _Work(
            state=jax.tree.map(put, carry.state, part),
            observation=put(carry.observation, observed),
            final_observation=carry.final_observation.at[unless_restart].set(observed, mode="drop"),
            begins=carry.begins.at[chosen].set(False, mode="drop"),
            ended=carry.ended & ~jnp.zeros_like(ended).at[chosen].set(restarts, mode="drop"),
        )

    bare = replace(state, saved=_NO_POSITION)
    start = _Work(bare, observation, observation, begins, ended)
    end = lax.while_loop(lambda carry: (carry.begins | carry.ended).any(), work, start)
    return replace(end.state, saved=saved), end.observation, end.final_observation


def next_games(state: State) -> State:
    """The next episode of each game's stream, before its first stage is laid out."""
    new = _map(game.new_game)(state.dice.stream, state.dice.episode + 1)
    return replace(new, saved=state.saved)


def select_games(condition: jax.Array, yes: State, no: State) -> State:
    """For each game one of two states, by a bool[n]."""
    return jax.vmap(select)(condition, yes, no)


def _map(rule: Callable[..., Any]) -> Callable[..., Any]:
    return jax.vmap(rule, axis_name=GAMES)


def over_games(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of many games one of a single game that `jax.vmap` sends back to it.

    Mapped twice, both axes become one batch.

    Args:
        rule: takes and returns trees of arrays with a leading axis of games.
    """

    @custom_vmap
    def many(*args: Any) -> Any:
        return rule(*args)

    @many.def_vmap
    def _flatten(size: int, mapped: Any, *args: Any) -> Any:
        args = _broadcast(size, mapped, args)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), args)
        out = many(*flat)
        return jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), out), _all_mapped(out)

    @custom_vmap
    def one(*args: Any) -> Any:
        return jax.tree.map(lambda x: x[0], many(*jax.tree.map(lambda x: x[None], args)))

    @one.def_vmap
    def _batch(size: int, mapped: Any, *args: Any) -> Any:
        out = many(*_broadcast(size, mapped, args))
        return out, _all_mapped(out)

    return one


def _broadcast(size: int, mapped: Any, args: Any) -> Any:
    return jax.tree.map(
        lambda x, is_mapped: x if is_mapped else jnp.broadcast_to(x, (size, *x.shape)),
        args,
        tuple(mapped),
    )


def _all_mapped(tree: Any) -> Any:
    return jax.tree.map(lambda _: True, tree)
