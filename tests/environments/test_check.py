"""What is no environment is refused in one line: the frog of examples/, with something changed."""

import re
from typing import Any

import jax
import probe_environments as probes
import pytest
from paths import ROOT

import hackmatrix
from hackmatrix.environments.check import check_environment
from hackmatrix.environments.classic import ClassicControl
from hackmatrix.errors import UserError

FROG = (ROOT / "examples" / "frog.py").read_text()

ACTIONS = "num_actions = len(HOPS)"
SIZE = "feature_size = 2 * PADS.size"
START = "pond = Pond(PADS.at[frog].set(False), frog)"
RESET = "return pond, pond\n\n"
HOP = "after = Pond(pond.pads.at[frog].set(False), frog)"
WON = '"won": ~after.pads.any()'
FINAL = '"final_observation": after'
STEP = "return pond, pond, jnp.float32(1), ended, jnp.bool_(False), info"
MASK = "return pond.pads[pond.frog + HOPS]"
VECTOR = "return jnp.concatenate([pond.pads, frog]).astype(jnp.float32)"
FEATURES = "    def features("

RETURNS = "step: must return observation, state, reward, terminated, truncated, info; it returns"
TAKES = (
    "JAX takes numbers, arrays, and tuples, dicts, NamedTuples and flax.struct.dataclasses of them"
)
NAMED = "    def reset_game(self, stream, episode):\n        return"

WRONG: list[tuple[dict[str, str], str]] = [
    ({FEATURES: "    def feature("}, "returns a Frog, which has no features"),
    ({ACTIONS: "num_actions = 0"}, "num_actions must be an int from 1 to 32, is 0"),
    ({ACTIONS: "num_actions = 33"}, "num_actions must be an int from 1 to 32, is 33"),
    ({ACTIONS: "num_actions = 4.0"}, "num_actions must be an int from 1 to 32, is 4.0"),
    ({SIZE: "feature_size = (72,)"}, "feature_size must be an int of at least 1, is (72,)"),
    ({SIZE: "feature_size = 0"}, "feature_size must be an int of at least 1, is 0"),
    # reset
    (
        {"def reset(self, key: jax.Array)": "def reset(self)"},
        "reset: TypeError: Frog.reset() takes 1 positional argument but 2 were given",
    ),
    ({RESET: "return pond\n\n"}, "reset: must return observation, state; it returns a Pond"),
    (
        {RESET: "return pond, pond, {}\n\n"},
        "reset: must return observation, state; it returns 3 values",
    ),
    ({RESET: "return pond, object()\n\n"}, f"reset: state is an object; {TAKES}"),
    ({RESET: 'return pond, ("?", pond)\n\n'}, f"reset: state[0] is a str; {TAKES}"),
    (
        {RESET: 'return pond, {"key": key}\n\n'},
        "reset: state['key'] is a random key, which checkpoints do not hold: use the one that step "
        "gets, or keep jax.random.key_data of it",
    ),
    (
        {FEATURES: f"{NAMED} jnp.ones(3), PADS\n\n{FEATURES}"},
        "reset_game: observation.pads is bool[36] from reset and missing from reset_game",
    ),
    # action_mask
    (
        {MASK: f"{MASK} * 1"},
        "action_mask: the mask must be bool[4], is int32[4]; jnp.bool(...) makes it one",
    ),
    ({MASK: f"{MASK}[:3]"}, "action_mask: the mask must be bool[4], is bool[3]"),
    ({MASK: "return [True] * 4"}, "action_mask: the mask must be bool[4], is a list"),
    # features
    ({VECTOR: "return frog"}, "features: the vector must be float32[72], is float32[36]"),
    (
        {VECTOR: VECTOR.replace("float32", "uint8")},
        "features: the vector must be float32[72], is uint8[72]; jnp.float32(...) makes it one",
    ),
    (
        {VECTOR: f"{VECTOR}\n\n    features = 7"},
        "features: TypeError: 'int' object is not callable",
    ),
    # step
    (
        {"def step(self, key: jax.Array, ": "def step(self, "},
        "step: TypeError: Frog.step() takes 3 positional arguments but 4 were given",
    ),
    ({HOP: "after = foo"}, "step: frog.py:42: NameError: name 'foo' is not defined"),
    ({STEP: "return pond, pond, 1.0, ended, info"}, f"{RETURNS} 5 values"),
    ({STEP: "return pond"}, f"{RETURNS} a Pond"),
    ({STEP: "return frog"}, f"{RETURNS} an array"),
    (
        {STEP: STEP.replace("float32", "int32")},
        "step: reward must be float32[], is int32[]; jnp.float32(...) makes it one",
    ),
    (
        {STEP: STEP.replace("float32(1)", "ones(1)")},
        "step: reward must be float32[], is float32[1]",
    ),
    (
        {STEP: STEP.replace("ended", "1 * ended")},
        "step: terminated must be bool[], is int32[]; jnp.bool(...) makes it one",
    ),
    (
        {STEP: STEP.replace("bool_(False)", "zeros(())")},
        "step: truncated must be bool[], is float32[]; jnp.bool(...) makes it one",
    ),
    ({STEP: STEP.replace("pond, pond", "PADS, pond")}, "step: observation.pads is bool[36] from r"),
    (
        {STEP: STEP.replace("pond, pond", "pond._replace(frog=jnp.float32(1)), pond")},
        "step: observation.frog is int32[] from reset and float32[] from step",
    ),
    (
        {STEP: STEP.replace("pond, pond", "pond, pond._replace(pads=PADS[1:])")},
        "step: state.pads is bool[36] from reset and bool[35] from step",
    ),
    (
        {STEP: STEP.replace("pond, pond", "pond, pond._replace(frog=None)")},
        "step: state.frog is int32[] from reset and missing from step",
    ),
    (
        {STEP: STEP.replace("pond, pond", "pond, (*pond, key)")},
        "step: state.pads is bool[36] from reset and missing from step",
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
    # info
    ({STEP: f"{STEP}.keys()"}, f"step: info is a dict_keys; {TAKES}"),
    ({STEP: STEP.replace("info", "[info]")}, "step: info must be a dict, is a list"),
    (
        {FINAL: '"final": after'},
        'step: info has no "final_observation": the observation before the next game starts; while '
        "the game goes on, the observation",
    ),
    (
        {FINAL: f"{FINAL}._replace(frog=0.5)"},
        'step: observation.frog is int32[] from reset and float32[] in info["final_observation"]',
    ),
    ({WON: '"said": "plop"'}, f"step: info['said'] is a str; {TAKES}"),
    (
        {WON: '"won": 1'},
        'step: info["won"] must be bool[], is int32[]; jnp.bool(...) makes it one',
    ),
    (
        {WON: '"score": 0.5'},
        'step: info["score"] must be an integer, is float32[]',
    ),
    ({WON: '"stage": HOPS'}, 'step: info["stage"] must be an integer, is int32[4]'),
    ({WON: '"programs_owned": ended'}, 'step: info["programs_owned"] must be an integer, is bool['),
    (
        {WON: '"reward_parts": jnp.zeros(3)'},
        'step: info["reward_parts"] must be float32[15], is float32[3]',
    ),
]


def changed(changes: dict[str, str]) -> Any:
    """The class of the frog, with these changes of its text."""
    text = FROG
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    names: dict[str, Any] = {}
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
        {WON: '"score": frog.astype(jnp.uint8), "stage": 3, "more": {"of": [1.5, None]}'},
        {FEATURES: f"{NAMED} self.reset(jax.random.key(episode))\n\n{FEATURES}"},
    ],
)
def test_what_is_right_passes(changes: dict[str, str]) -> None:
    check_environment(changed(changes)())


@pytest.mark.parametrize(
    "make", [hackmatrix.make, lambda: ClassicControl("CartPole-v1"), probes.Grid, probes.Pairing]
)
def test_the_environments_that_are_here_pass(make: Any) -> None:
    check_environment(make())


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
