"""Checks whether an object is an `Environment`, by tracing its methods; nothing is run."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from hackmatrix.core.errors import UserError
from hackmatrix.core.jax_defaults import with_jax_defaults
from hackmatrix.environments.checked_report import report_of
from hackmatrix.environments.interface.environment import (
    MAX_ACTIONS,
    Environment,
    PyTree,
    StepRecord,
    optional_members,
)
from hackmatrix.environments.interface.metric import Metric, Over
from hackmatrix.environments.interface.report import PlayedGames
from hackmatrix.environments.user_code import convert_errors

_NUMBER_TYPES = (jax.Array, np.ndarray, np.generic, bool, int, float)
_MEMBERS = [name for name in vars(Environment) if not name.startswith("_")]
_GAME = ("observation", "state")
_STEP = (*_GAME, "reward", "terminated", "truncated", "info")
_MEASURED = (Over.STEPS, Over.EPISODES, Over.HIGHEST, Over.CHANCES)


@with_jax_defaults
def check_environment(env: Any) -> None:
    """Raises an error if an environment can't be trained on.

    Only members, shapes and dtypes are checked: it does not find a mask without a valid action, or
    a game that does not restart after its end.

    Raises:
        UserError: a member is missing, fails, or returns something other than `Environment` says.
    """
    if isinstance(env, type):
        raise UserError(f"returns the class {env.__name__}, not {env.__name__}()")
    missing = [name for name in _MEMBERS if not hasattr(env, name)]
    if missing:
        raise UserError(f"returns {_type_name(env)}, which has no {', '.join(missing)}")
    _check_number("num_actions", env.num_actions, most=MAX_ACTIONS)
    _check_number("feature_size", env.feature_size)

    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    word = _array(jnp.uint32)
    with convert_errors("reset"):
        game = _results_of(env.reset, _GAME, key)
        _check_storable(game)
    if hasattr(env, "reset_game"):
        with convert_errors("reset_game"):
            named = _results_of(env.reset_game, _GAME, word, word)
            _check_same(game, named, "from reset_game")
    with convert_errors("action_mask"):
        mask = _results_of(env.action_mask, ("mask",), game["state"])["mask"]
        _check_array("the mask", mask, jnp.bool_, env.num_actions)
    with convert_errors("features"):
        features = _results_of(env.features, ("features",), game["observation"])["features"]
        _check_array("the vector", features, jnp.float32, env.feature_size)
    # Python numbers in a state are weakly typed, but arrays from a checkpoint are not: check both.
    with convert_errors("step"):
        for state in _with_and_without_weak_types(game["state"]):
            step = _results_of(env.step, _STEP, key, state, _array(jnp.int32))
            _check_step(step, game)
        if optional_members(env).never_truncates and _may_truncate(env, key, state):
            raise UserError(
                "truncated may be true, but never_truncates is True; leave it out, so that values "
                "of final observations are computed"
            )
    _check_spaces(env, game["observation"])
    _check_report(env, step["info"])
    with convert_errors("metrics"):
        measured = _measured_metrics(env)
    if measured:
        record = StepRecord(
            action=_array(jnp.int32),
            mask=_array(jnp.bool_, env.num_actions),
            previous_mask=_array(jnp.bool_, env.num_actions),
            reward=_array(jnp.float32),
            ended=_array(jnp.bool_),
            info=step["info"],
        )
        with convert_errors("measure"):
            measures = _results_of(env.measure, ("measures",), record)["measures"]
            _check_measures(measures, measured)


def _check_step(step: dict[str, PyTree], game: dict[str, PyTree]) -> None:
    _check_same(game, {name: step[name] for name in _GAME}, "from step")
    _check_array("reward", step["reward"], jnp.float32)
    _check_array("terminated", step["terminated"], jnp.bool_)
    _check_array("truncated", step["truncated"], jnp.bool_)
    info = step["info"]
    if not isinstance(info, dict):
        raise UserError(f"info must be a dict, is {_type_name(info)}")
    if "final_observation" not in info:
        raise UserError(
            'info has no "final_observation": the observation before the next game starts; '
            "while the game goes on, the observation"
        )
    observation = {"observation": game["observation"]}
    final = {"observation": info["final_observation"]}
    _check_same(observation, final, 'in info["final_observation"]')


def _may_truncate(env: Any, key: Any, state: PyTree) -> bool:
    """Whether `truncated` depends on the game, other than by what an unlimited HackMatrix says."""
    step = jax.make_jaxpr(lambda *arguments: env.step(*arguments)[4])
    traced = step(key, state, _array(jnp.int32)).jaxpr
    varying, passed_on = set(traced.invars), set[Any]()
    for equation in traced.eqns:
        inputs = {x for x in equation.invars if not isinstance(x, Literal)}
        if not varying & inputs:
            continue
        varying.update(equation.outvars)
        if equation.primitive.name == "over_games" or (
            equation.primitive.name == "squeeze" and inputs <= passed_on
        ):
            passed_on.update(equation.outvars)
    (truncated,) = traced.outvars
    return not isinstance(truncated, Literal) and truncated in varying - passed_on


def _check_spaces(env: Any, observation: PyTree) -> None:
    """Checks the spaces; they are optional, but must be right if present."""
    count = getattr(getattr(env, "action_space", None), "n", env.num_actions)
    if count != env.num_actions:
        raise UserError(f"action_space has {count} actions, num_actions is {env.num_actions}")
    space: Any = getattr(env, "observation_space", None)
    if hasattr(space, "shape") and hasattr(space, "dtype"):
        wanted = jax.ShapeDtypeStruct(space.shape, space.dtype)
        if _text(wanted) != _text(observation):
            raise UserError(
                f"observation_space is of {_text(wanted)}, observations are {_text(observation)}"
            )


def _check_report(env: Any, info: dict[str, PyTree]) -> None:
    """Tries `report` on two made-up games in which everything is 0."""

    def zeros(tree: PyTree) -> PyTree:
        return jax.tree.map(lambda x: np.zeros((2, *x.shape), x.dtype), tree)

    final_observation = zeros(info["final_observation"])
    games = PlayedGames(
        returns=np.zeros(2, np.float32),
        lengths=np.zeros(2, np.int32),
        actions=np.zeros((2, env.num_actions), np.int32),
        terminated=np.zeros(2, bool),
        info=zeros({name: value for name, value in info.items() if name != "final_observation"}),
        final_observation=final_observation,
    )
    with np.errstate(all="ignore"):
        report_of(env, games)


def _measured_metrics(env: Any) -> dict[str, Metric]:
    """The metrics for which `measure` must return a value, by name."""
    metrics = getattr(env, "metrics", ())
    if not isinstance(metrics, tuple | list):
        raise UserError(f"must be a tuple of Metric, is {_type_name(metrics)}")
    measured: dict[str, Metric] = {}
    names = set()
    for index, metric in enumerate(metrics):
        if not isinstance(metric, Metric):
            raise UserError(f"must be a tuple of Metric, [{index}] is {_type_name(metric)}")
        if metric.name in names:
            raise UserError(f"{metric.name} is there twice")
        if metric.name.startswith("train/"):
            raise UserError(f"{metric.name}: names that begin with train/ are the trainer's own")
        names.add(metric.name)
        _check_form(metric)
        if metric.over in _MEASURED:
            measured[metric.name] = metric
        elif metric.over is not Over.EVALUATION:
            known = ", ".join(over.name for over in _MEASURED)
            raise UserError(
                f"{metric.name} is over {metric.over.name}, which the trainer measures; those of "
                f"an environment are over {known} or EVALUATION"
            )
    if measured and not hasattr(env, "measure"):
        raise UserError(f"there is no method measure, which gives {', '.join(measured)}")
    if hasattr(env, "measure") and not measured:
        raise UserError("there are none for measure to give; name them in the member metrics")
    return measured


def _check_form(metric: Metric) -> None:
    if metric.shown is not None:
        try:
            format(0.0, metric.shown.form)
        except (TypeError, ValueError):
            raise UserError(
                f"{metric.name}: shown has no format of a number, {metric.shown.form!r}"
            ) from None


def _check_measures(measures: PyTree, metrics: dict[str, Metric]) -> None:
    if not isinstance(measures, dict):
        raise UserError(f"must return a dict, returns {_type_name(measures)}")
    if missing := metrics.keys() - measures.keys():
        raise UserError(f"does not return {', '.join(sorted(missing))}, which metrics names")
    if unknown := measures.keys() - metrics.keys():
        raise UserError(f"returns {', '.join(sorted(unknown))}, which metrics does not name")
    for name, metric in metrics.items():
        value = measures[name]
        if metric.over is not Over.CHANCES:
            if not _is_number(value):
                raise UserError(f"{name} must be one number, is {_text(value)}")
        elif not isinstance(value, tuple | list) or [_is_number(x) for x in value] != [True, True]:
            raise UserError(f"{name} must be a pair (number, chances), is {_text(value)}")


def _results_of(
    method: Callable[..., Any], names: tuple[str, ...], *arguments: PyTree
) -> dict[str, PyTree]:
    """The values that a method returns, by these names, as shapes and dtypes."""

    def by_names(*arguments: PyTree) -> dict[str, PyTree]:
        result = method(*arguments)
        values = (result,) if len(names) == 1 else result
        if type(values) not in (tuple, list) or len(values) != len(names):
            got = f"{len(values)} values" if type(values) is tuple else _type_name(values)
            raise UserError(f"must return {', '.join(names)}; it returns {got}")
        by_name = dict(zip(names, values, strict=True))
        for path, leaf in _leaves(by_name).items():
            if not isinstance(leaf, _NUMBER_TYPES):
                raise UserError(
                    f"{path} is {_type_name(leaf)}; JAX takes numbers, arrays, and tuples, "
                    "dicts, NamedTuples and flax.struct.dataclasses of them"
                )
        return by_name

    result: dict[str, PyTree] = jax.eval_shape(by_names, *arguments)
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


def _check_storable(game: dict[str, PyTree]) -> None:
    """Checks that observation and state can be stored in a checkpoint."""
    for path, leaf in _leaves(game).items():
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise UserError(
                f"{path} is a random key, which checkpoints do not hold: use the one that step "
                "gets, or keep jax.random.key_data of it"
            )


def _check_same(wanted: dict[str, PyTree], got: dict[str, PyTree], where: str) -> None:
    """Checks that containers, shapes and dtypes are those from reset."""
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
    """The leaves of pytrees by their paths, such as `state.frog`."""
    return {
        name + jax.tree_util.keystr(path): leaf
        for name, tree in by_name.items()
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def _is_number(value: PyTree) -> bool:
    if not isinstance(value, jax.ShapeDtypeStruct) or value.shape:
        return False
    return value.dtype == jnp.bool_ or jnp.issubdtype(value.dtype, jnp.number)


def _array(dtype: Any, *shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def _text(value: PyTree) -> str:
    if value is None:
        return "missing"
    if not isinstance(value, jax.ShapeDtypeStruct):
        return _type_name(value)
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"


def _type_name(value: object) -> str:
    name = "array" if isinstance(value, jax.Array | jax.ShapeDtypeStruct) else type(value).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
