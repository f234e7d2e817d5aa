"""Whether something has the face of `Environment`. It is traced for its shapes, nothing is run."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.agents.distribution import MAX_ACTIONS
from hackmatrix.environments.user_code import told_as
from hackmatrix.errors import UserError
from hackmatrix.interface.environment import Environment, PyTree
from hackmatrix.rules.rewards import REWARD_PARTS

_NUMBERS = (jax.Array, np.ndarray, np.generic, bool, int, float)
_MEMBERS = [name for name in vars(Environment) if not name.startswith("_")]
_GAME = ("observation", "state")
_STEP = (*_GAME, "reward", "terminated", "truncated", "info")


def check_environment(env: Any) -> None:
    """Refuses what can't be trained on.

    A mask without a valid action, games that do not start anew and the like have the right shapes:
    they are not found.

    Raises:
        UserError: a member is missing, fails, or returns what `Environment` does not say.
    """
    if isinstance(env, type):
        raise UserError(f"returns the class {env.__name__}, not {env.__name__}()")
    missing = [name for name in _MEMBERS if not hasattr(env, name)]
    if missing:
        raise UserError(f"returns {_kind(env)}, which has no {', '.join(missing)}")
    _check_number("num_actions", env.num_actions, most=MAX_ACTIONS)
    _check_number("feature_size", env.feature_size)

    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    word = _scalar(jnp.uint32)
    with told_as("reset"):
        game = _returned(env.reset, _GAME, key)
        _check_kept(game)
    if hasattr(env, "reset_game"):
        with told_as("reset_game"):
            named = _returned(env.reset_game, _GAME, word, word)
            _check_same(game, named, "from reset_game")
    with told_as("action_mask"):
        mask = _returned(env.action_mask, ("mask",), game["state"])["mask"]
        _check_array("the mask", mask, jnp.bool_, env.num_actions)
    with told_as("features"):
        features = _returned(env.features, ("features",), game["observation"])["features"]
        _check_array("the vector", features, jnp.float32, env.feature_size)
    # Python numbers in a state have no dtype of their own, those of a checkpoint have.
    with told_as("step"):
        for state in _with_and_without_weak_types(game["state"]):
            _check_step(_returned(env.step, _STEP, key, state, _scalar(jnp.int32)), game)


def _check_step(step: dict[str, PyTree], game: dict[str, PyTree]) -> None:
    _check_same(game, {name: step[name] for name in _GAME}, "from step")
    _check_array("reward", step["reward"], jnp.float32)
    _check_array("terminated", step["terminated"], jnp.bool_)
    _check_array("truncated", step["truncated"], jnp.bool_)
    info = step["info"]
    if not isinstance(info, dict):
        raise UserError(f"info must be a dict, is {_kind(info)}")
    if "final_observation" not in info:
        raise UserError(
            'info has no "final_observation": the observation before the next game starts; '
            "while the game goes on, the observation"
        )
    observation = {"observation": game["observation"]}
    final = {"observation": info["final_observation"]}
    _check_same(observation, final, 'in info["final_observation"]')
    if "reward_parts" in info:
        _check_array('info["reward_parts"]', info["reward_parts"], jnp.float32, len(REWARD_PARTS))
    if "won" in info:
        _check_array('info["won"]', info["won"], jnp.bool_)
    for name in ("stage", "score", "programs_owned"):
        if name in info and not _is_integer(info[name]):
            raise UserError(f'info["{name}"] must be an integer, is {_text(info[name])}')


def _returned(
    method: Callable[..., Any], names: tuple[str, ...], *arguments: PyTree
) -> dict[str, PyTree]:
    """What a method returns, by these names; shapes and dtypes in the place of arrays."""

    def named(*arguments: PyTree) -> dict[str, PyTree]:
        result = method(*arguments)
        values = (result,) if len(names) == 1 else result
        if type(values) not in (tuple, list) or len(values) != len(names):
            got = f"{len(values)} values" if type(values) is tuple else _kind(values)
            raise UserError(f"must return {', '.join(names)}; it returns {got}")
        by_name = dict(zip(names, values, strict=True))
        for path, leaf in _leaves(by_name).items():
            if not isinstance(leaf, _NUMBERS):
                raise UserError(
                    f"{path} is {_kind(leaf)}; JAX takes numbers, arrays, and tuples, "
                    "dicts, NamedTuples and flax.struct.dataclasses of them"
                )
        return by_name

    result: dict[str, PyTree] = jax.eval_shape(named, *arguments)
    return result


def _check_number(name: str, value: Any, most: int | None = None) -> None:
    if not isinstance(value, int | np.integer) or value < 1 or (most and value > most):
        wanted = f"from 1 to {most}" if most else "of at least 1"
        raise UserError(f"{name} must be an int {wanted}, is {value!r}")


def _check_array(name: str, value: PyTree, dtype: Any, *shape: int) -> None:
    wanted = jax.ShapeDtypeStruct(shape, dtype)
    if not isinstance(value, jax.ShapeDtypeStruct) or value.shape != shape:
        raise UserError(f"{name} must be {_text(wanted)}, is {_text(value)}")
    if value.dtype != wanted.dtype:
        raise UserError(
            f"{name} must be {_text(wanted)}, is {_text(value)}; jnp.{dtype.__name__}(...) makes "
            "it one"
        )


def _check_kept(game: dict[str, PyTree]) -> None:
    """What is kept from step to step must go into a checkpoint."""
    for path, leaf in _leaves(game).items():
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise UserError(
                f"{path} is a random key, which checkpoints do not hold: use the one that step "
                "gets, or keep jax.random.key_data of it"
            )


def _check_same(wanted: dict[str, PyTree], got: dict[str, PyTree], where: str) -> None:
    """The same containers, shapes and dtypes as from reset."""
    before, after = _leaves(wanted), _leaves(got)
    for path in before | after:
        first, then = before.get(path), after.get(path)
        if first is None or then is None or (first.shape, first.dtype) != (then.shape, then.dtype):
            weak = " (weakly typed)" if first is not None and first.weak_type else ""
            raise UserError(f"{path} is {_text(first)}{weak} from reset and {_text(then)} {where}")
    for name in wanted:
        kinds = [str(jax.tree.structure(tree[name])) for tree in (wanted, got)]
        if kinds[0] != kinds[1]:
            raise UserError(f"{name} is {kinds[0]} from reset and {kinds[1]} {where}")


def _with_and_without_weak_types(state: PyTree) -> list[PyTree]:
    weak = any(leaf.weak_type for leaf in jax.tree.leaves(state))
    typed = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), state)
    return [state, typed] if weak else [state]


def _leaves(by_name: dict[str, PyTree]) -> dict[str, Any]:
    """The leaves of trees by their paths, such as `state.frog`."""
    return {
        name + jax.tree_util.keystr(path): leaf
        for name, tree in by_name.items()
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def _is_integer(value: PyTree) -> bool:
    is_scalar = isinstance(value, jax.ShapeDtypeStruct) and value.shape == ()
    return is_scalar and jnp.issubdtype(value.dtype, jnp.integer)


def _scalar(dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((), dtype)


def _text(value: PyTree) -> str:
    if value is None:
        return "missing"
    if not isinstance(value, jax.ShapeDtypeStruct):
        return _kind(value)
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"


def _kind(value: object) -> str:
    name = "array" if isinstance(value, jax.Array | jax.ShapeDtypeStruct) else type(value).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
