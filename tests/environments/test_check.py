"""An object that is no environment is refused in one line: the frog of examples/, changed."""

import re
from functools import partial
from typing import Any

import jax
import probe_environments as probes
import pytest
from paths import ROOT

import hackmatrix
from hackmatrix.core.errors import UserError
from hackmatrix.environments.check import check_environment
from hackmatrix.environments.interface.spaces import Box, Discrete
from hackmatrix.environments.wrappers import FloatObservations, LogEpisodes, NoAutoReset

FROG = (ROOT / "examples" / "frog.py").read_text()

ACTIONS = "num_actions = len(HOPS)"
LIMIT = "never_truncates = True"
SIZE = "feature_size = 2 * PADS.size"
START = "pond = Pond(PADS.at[frog].set(False), frog)"
RESET = "return pond, pond\n\n"
HOP = "after = Pond(pond.pads.at[frog].set(False), frog)"
WON = '"won": ~after.pads.any()'
FINAL = '"final_observation": after'
STEP = "return pond, pond, jnp.float32(1), ended, jnp.bool_(False), info"
MASK = "return pond.pads[pond.frog + HOPS]"
METRICS = "metrics = ("
OF_METRICS = 'Metric("pond/choices", Over.STEPS'
CHANCES = OF_METRICS.replace("STEPS", "CHANCES")
MEASURE = "def measure("
MEASURED = '{"pond/won": step.info["won"], "pond/choices": jnp.sum(step.mask)}'
CHOICES = "jnp.sum(step.mask)"
VECTOR = "return jnp.concatenate([pond.pads, frog]).astype(jnp.float32)"
FEATURES = "    def features("

RETURNS = "step: must return observation, state, reward, terminated, truncated, info; it returns"
TAKES = (
    "JAX takes numbers, arrays, and tuples, dicts, NamedTuples and flax.struct.dataclasses of them"
)
NAMED = "    def reset_game(self, stream, episode):\n        return"


def stepping(old: str, new: str) -> dict[str, str]:
    """A change of what a step returns."""
    return {STEP: STEP.replace(old, new)}


WRONG: list[tuple[dict[str, str], str]] = [
    ({FEATURES: "    def feature("}, "returns a Frog, which has no features"),
    ({ACTIONS: "num_actions = 0"}, "num_actions must be an int from 1 to 32, is 0"),
    ({ACTIONS: "num_actions = 33"}, "num_actions must be an int from 1 to 32, is 33"),
    ({ACTIONS: "num_actions = 4.0"}, "num_actions must be an int from 1 to 32, is 4.0"),
    ({SIZE: "feature_size = 0"}, "feature_size must be an int of at least 1, is 0"),
    # reset
    (
        {"def reset(self, key: jax.Array)": "def reset(self)"},
        "reset: TypeError: Frog.reset() takes 1 positional argument but 2 were given",
    ),
    ({RESET: "return pond\n\n"}, "reset: must return observation, state; it returns a Pond"),
    ({RESET: "return 1, 2, 3\n\n"}, "reset: must return observation, state; it returns 3 values"),
    ({RESET: 'return pond, ("?", pond)\n\n'}, f"reset: state[0] is a str; {TAKES}"),
    ({RESET: 'return pond, {"key": key}\n\n'}, "reset: state['key'] is a random key"),
    (
        {FEATURES: f"{NAMED} jnp.ones(3), PADS\n\n{FEATURES}"},
        "reset_game: observation.pads is bool[36] from reset and missing from reset_game",
    ),
    # action_mask and features
    (
        {MASK: f"{MASK} * 1"},
        "action_mask: the mask must be bool[4], is int32[4]; jnp.bool(...) makes it one",
    ),
    ({MASK: f"{MASK}[:3]"}, "action_mask: the mask must be bool[4], is bool[3]"),
    ({MASK: "return [True] * 4"}, "action_mask: the mask must be bool[4], is a list"),
    ({VECTOR: "return frog"}, "features: the vector must be float32[72], is float32[36]"),
    # step
    ({HOP: "after = foo"}, "step: frog.py:49: NameError: name 'foo' is not defined"),
    ({STEP: "return pond, pond, 1.0, ended, info"}, f"{RETURNS} 5 values"),
    ({STEP: "return frog"}, f"{RETURNS} an array"),
    (stepping("float32", "int32"), "step: reward must be float32[], is int32[]"),
    (stepping("float32(1)", "ones(1)"), "step: reward must be float32[], is float32[1]"),
    (stepping("ended", "1 * ended"), "step: terminated must be bool[], is int32[]"),
    (stepping("bool_(False)", "zeros(())"), "step: truncated must be bool[], is "),
    (
        stepping("jnp.bool_(False)", "after.pads.sum() < 9"),
        "step: truncated may be true, but never_truncates is True; leave it out, so that values "
        "of final observations are computed",
    ),
    (stepping("pond, pond", "PADS, pond"), "step: observation.pads is bool[36]"),
    (
        stepping("pond, pond", "pond._replace(frog=jnp.float32(1)), pond"),
        "step: observation.frog is int32[] from reset and float32[] from step",
    ),
    (
        stepping("pond, pond", "pond, pond._replace(frog=None)"),
        "step: state.frog is int32[] from reset and missing from step",
    ),
    (
        {
            RESET: "return [frog], pond\n\n",
            STEP: STEP.replace("pond, pond", "(frog,), pond"),
            "frog = jax.nn.one_hot(pond.frog, PADS.size)": "",
            VECTOR: "return jnp.zeros(72)",
        },
        "step: observation is PyTreeDef([*]) from reset and PyTreeDef((*,)) from step",
    ),
    # Python numbers in a state take the dtype of what they meet: here that of the hops, and then
    # that of the pads, which they do not when they come from a checkpoint.
    (
        {"-WIDTH, WIDTH, -1, 1]": "-WIDTH, WIDTH, -1, 1], jnp.int8", START: "pond = Pond(PADS, 7)"},
        "step: observation.frog is int32[] (weakly typed) from reset and int8[] from step",
    ),
    (
        {
            START: "pond = Pond(PADS.astype(jnp.int8), 7)",
            HOP: "after = Pond(pond.pads + 0 * pond.frog, 7)",
            MASK: f"{MASK} > 0",
        },
        "step: observation.pads is int8[36] from reset and int32[36] from step",
    ),
    # info and spaces
    (stepping("info", "[info]"), "step: info must be a dict, is a list"),
    ({FINAL: '"final": after'}, 'step: info has no "final_observation"'),
    ({FINAL: f"{FINAL}._replace(frog=0.5)"}, "step: observation.frog is int32[]"),
    ({WON: '"said": "plop"'}, f"step: info['said'] is a str; {TAKES}"),
    (
        {SIZE: f"{SIZE}\n    action_space = Discrete(5)"},
        "action_space has 5 actions, num_actions is 4",
    ),
    (
        {SIZE: f"{SIZE}\n    observation_space = Box(0, 1, (36,))"},
        "observation_space is of float32[36], observations are a Pond",
    ),
    # metrics
    ({METRICS: 'metrics = "won", ('}, "metrics: must be a tuple of Metric, [0] is a str"),
    ({METRICS: "metrics = {}; others = ("}, "metrics: must be a tuple of Metric, is a dict"),
    ({OF_METRICS: 'Metric("pond/won", Over.STEPS'}, "metrics: pond/won is there twice"),
    (
        {OF_METRICS: OF_METRICS.replace("pond", "train")},
        "metrics: train/choices: names that begin with train/",
    ),
    ({OF_METRICS: OF_METRICS.replace("STEPS", "LOOP")}, "metrics: pond/choices is over LOOP"),
    ({MEASURE: "def measures("}, "metrics: there is no method measure, which gives "),
    ({METRICS: "others = ("}, "metrics: there are none for measure to give; name "),
    (
        {
            '"fraction of games in which all pads sank"': (
                '"won", shown=Shown("POND", "won", ".2z")'
            ),
            "import Metric, Over": "import Metric, Over, Shown",
        },
        "metrics: pond/won: shown has no format of a number, '.2z'",
    ),
    # measure
    (
        {MEASURED: '{"pond/won": step.info["won"]}'},
        "measure: does not return pond/choices, which metrics names",
    ),
    (
        {MEASURED: MEASURED.replace("}", ', "pond/pads": 1, "hops": 2}')},
        "measure: returns hops, pond/pads, which metrics does not name",
    ),
    ({CHOICES: "step.mask"}, "measure: pond/choices must be one number, is bool[4]"),
    ({CHOICES: "(1, 2)"}, "measure: pond/choices must be one number, is a tuple"),
    ({OF_METRICS: CHANCES}, "measure: pond/choices must be a pair (number, chances), is int32[]"),
    (
        {OF_METRICS: CHANCES, CHOICES: "(1, step.mask)"},
        "measure: pond/choices must be a pair (number, chances), is a tuple",
    ),
    ({MEASURED: f"[{MEASURED}]"}, "measure: must return a dict, returns a list"),
    ({MEASURED: MEASURED.replace('"won"', '"one"')}, "measure: frog.py:"),
]


def changed(changes: dict[str, str]) -> Any:
    """The class of the frog, with these changes of its text."""
    text = FROG
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    names: dict[str, Any] = {"Box": Box, "Discrete": Discrete}
    exec(compile(text, "frog.py", "exec"), names)
    return names["Frog"]


def refusal(env: Any) -> str:
    with pytest.raises(UserError) as error:
        check_environment(env)
    return str(error.value)


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_not_as_it_must_be_is_told(changes: dict[str, str], message: str) -> None:
    told = refusal(changed(changes)())
    assert told.startswith(message)
    assert "\n" not in told


def test_what_is_no_environment_at_all() -> None:
    missing = "num_actions, feature_size, reset, step, action_mask, features"
    assert refusal(None) == f"returns a NoneType, which has no {missing}"
    assert refusal(changed({})) == "returns the class Frog, not Frog()"


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {START: "pond = Pond(PADS.at[frog].set(False), 7)"},  # a Python number that does no harm
        {STEP: STEP.replace("jnp.float32(1)", "1.0").replace("jnp.bool_(False)", "False")},
        {WON: f'{WON}, "stage": 0.5, "reward_parts": frog, "more": {{"of": [1.5, None]}}'},
        {OF_METRICS: CHANCES, CHOICES: "(True, 0.5)"},
        {OF_METRICS: OF_METRICS.replace("STEPS", "HIGHEST"), CHOICES: "step.action"},
        {
            OF_METRICS: OF_METRICS.replace("STEPS", "EVALUATION"),
            MEASURED: '{"pond/won": step.info["won"] & step.ended}',
        },
        {METRICS: "others = (", MEASURE: "def measures("},
        {
            LIMIT: "never_truncates = False",
            STEP: STEP.replace("jnp.bool_(False)", "after.pads.sum() < 9"),
        },
        {FEATURES: f"{NAMED} self.reset(jax.random.key(episode))\n\n{FEATURES}"},
    ],
)
def test_what_is_right_passes(changes: dict[str, str]) -> None:
    check_environment(changed(changes)())


@pytest.mark.parametrize(
    "make",
    [
        *(partial(hackmatrix.make, name) for name in hackmatrix.registered()),
        lambda: LogEpisodes(NoAutoReset(FloatObservations(hackmatrix.make()))),
        probes.Grid,
    ],
)
def test_the_environments_that_are_here_pass(make: Any) -> None:
    check_environment(make())


def test_truncation_of_a_game_without_limit_is_noticed() -> None:
    class Cut(LogEpisodes):  # says of itself that it passes truncation on
        def step(self, key: Any, state: Any, action: Any) -> Any:
            *step, truncated, info = super().step(key, state, action)
            return *step, truncated | (info["episode_length"] >= 20), info

    assert refusal(Cut(hackmatrix.make())).startswith("step: truncated may be true, but never_")
    check_environment(Cut(hackmatrix.make(max_episode_steps=100)))


def test_nothing_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    env = changed({START: f'{START}\n        jax.debug.print("plop")'})()
    check_environment(env)
    jax.effects_barrier()
    assert capsys.readouterr().out == ""
    env.reset(jax.random.key(0))
    jax.effects_barrier()
    assert capsys.readouterr().out == "plop\n"


def test_the_messages_in_the_documentation_are_those_that_come() -> None:
    text = (ROOT / "docs" / "your-environment.md").read_text()
    shown = re.findall(r"^environment frog:Frog: (.*)$", text, re.MULTILINE)
    assert len(shown) >= 3
    assert set(shown) <= {message for _, message in WRONG}
