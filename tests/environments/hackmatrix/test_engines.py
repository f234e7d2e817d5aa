"""The engines of the environment play the same games, and take up each other's."""

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hackmatrix
from hackmatrix.agents.networks.architectures import NetworkConfig
from hackmatrix.core.errors import UserError
from hackmatrix.environments.hackmatrix import HackMatrixEnv, engines
from hackmatrix.environments.interface.spaces import StepSpec
from hackmatrix.game import native
from hackmatrix.game.jaxgame.state import State
from hackmatrix.game.native import cuda
from hackmatrix.learning.algorithms.config import PPOConfig
from hackmatrix.learning.trainer.trainer import Trainer

GAMES, STEPS = 16, 40
SETTINGS = {"layout": "tactical", "max_episode_steps": 30, "reward": "progress"}

needs_native = pytest.mark.skipif(not native.available, reason="the native engine was left out")
pytestmark = needs_native


def made(engine: str) -> HackMatrixEnv:
    return hackmatrix.make(engine=engine, **SETTINGS)


def played(env: HackMatrixEnv, state: Any, steps: int) -> tuple[Any, list[StepSpec]]:
    """Plays actions, valid or not, that depend on the masks alone."""
    step, masks_of = jax.jit(jax.vmap(env.step, (None, 0, 0))), jax.jit(jax.vmap(env.action_mask))
    rng, taken = np.random.default_rng(0), []
    for _ in range(steps):
        masks = np.asarray(masks_of(state))
        actions = (rng.random(masks.shape) * (masks + 0.001)).argmax(axis=1)
        taken.append(StepSpec(*step(None, state, actions)))
        state = taken[-1].state
    return state, taken


def begun(env: HackMatrixEnv) -> tuple[Any, Any]:
    streams = jnp.arange(GAMES, dtype=jnp.uint32)
    begin = jax.jit(jax.vmap(env.reset_game, (0, None)))
    observation, state = begin(streams, jnp.uint32(3))
    return observation, state


@pytest.fixture(scope="module")
def of_native() -> tuple[Any, list[StepSpec]]:
    return played(made("native"), begun(made("native"))[1], STEPS)


def game(state: Any, i: int) -> Any:
    return jax.tree.map(lambda x: x[i], state)


# A minute to compile; `integrations/gymnasium/test_vector.py` compares the two in 30 steps.
@pytest.mark.slow
def test_every_result_is_the_same(of_native: Any) -> None:
    env, (last, steps) = made("jax"), of_native
    first, state = begun(env)
    np.testing.assert_array_equal(first, begun(made("native"))[0])
    after, others = played(env, state, STEPS)
    for ours, theirs in zip(steps, others, strict=True):
        ours, theirs = (x._replace(state=x.state.episode_return) for x in (ours, theirs))
        # What is compiled without optimisations rounds a sum once.
        np.testing.assert_allclose(ours.reward, theirs.reward, rtol=1e-6, atol=1e-6)
        ours = ours._replace(reward=theirs.reward)
        jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    for i in range(GAMES):
        assert game(last, i).to_engine() == game(after, i).to_engine()
    assert sum(int(step.truncated.sum()) for step in steps) > 2
    assert sum(int(step.terminated.sum()) for step in steps) > 2


@pytest.mark.thorough
def test_games_are_taken_up_by_another_engine(of_native: Any) -> None:
    """From a file, as the JAX engine has them; UNDO leads to the same places."""
    native_env, jax_env, (last, _) = made("native"), made("jax"), of_native
    stored = jax.jit(native_env.portable)({"games": last, "other": jnp.arange(3)})
    assert isinstance(stored["games"].game, State)
    assert stored["other"].tolist() == [0, 1, 2]
    again = jax.jit(native_env.from_portable)(stored)
    jax.tree.map(np.testing.assert_array_equal, jax_env.portable(stored), stored)
    for i in range(GAMES):
        wanted = game(last, i).to_engine()
        assert game(stored["games"], i).to_engine() == wanted
        assert game(again["games"], i).to_engine() == wanted
        assert game(jax_env.from_portable(stored)["games"], i).to_engine() == wanted
    assert max(len(game(last, i).to_engine().saved) for i in range(GAMES)) == 4
    ours, theirs = (played(native_env, state, 10)[1] for state in (last, again["games"]))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.observation, other.observation)


def test_the_native_engine_is_chosen_on_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    engine_of = engines.engine_of.__wrapped__
    assert engine_of("auto") is engine_of("native")
    monkeypatch.setattr(native, "available", False)
    assert engine_of("auto") is engine_of("jax")
    with pytest.raises(UserError, match="engine=native: it was left out at the installation"):
        engine_of("native")
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    with pytest.raises(UserError, match="plays on CPUs and NVIDIA's GPUs, and JAX is on tpu"):
        engine_of("native")


def test_on_gpus_the_native_engine_plays_where_its_kernels_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise cuda.CudaError("NVRTC is missing")

    engine_of = engines.engine_of.__wrapped__
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(cuda, "register", lambda: None)
    assert engine_of("auto") is engine_of("native")
    monkeypatch.setattr(cuda, "register", missing)
    told = "does not play on this GPU: NVRTC is missing; JAX's plays"
    with pytest.warns(UserWarning, match=told):
        assert engine_of("auto") is engine_of("jax")
    with pytest.raises(UserError, match="engine=native: it does not play on this GPU"):
        engine_of("native")


OTHER_JAX = """
import warnings
import jax

def refuse(*_, **__):
    raise jax.errors.JaxRuntimeError("its API version (0.5) is incompatible with (0.4)")

jax.ffi.register_ffi_target = refuse
import hackmatrix
from hackmatrix.core.errors import UserError
with warnings.catch_warnings(record=True) as told:
    print(hackmatrix.make().games.NAME, told[0].message)
try:
    hackmatrix.make(engine="native").games
except UserError as error:
    print(error)
"""


@pytest.mark.thorough
def test_without_the_native_engine_where_it_was_built_for_a_later_jax() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OTHER_JAX], capture_output=True, text=True, check=True
    )
    told, refused = done.stdout.splitlines()
    built = f"was built for a later JAX than {jax.__version__}"
    assert told == f"jax the native engine {built}; JAX's plays, more slowly"
    assert refused == f"engine=native: it {built}; see docs/native-engine.md"


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UserError, match="engine must be one of auto, native, jax, pallas, got 'x'"):
        hackmatrix.make(engine="x")


def test_a_step_compiles_no_rule_of_the_game() -> None:
    """The program is a custom call and little else."""
    env = made("native")
    _, state = begun(env)
    step = jax.jit(jax.vmap(env.step, (None, 0, 0)))
    text = step.lower(None, state, jnp.zeros(GAMES, jnp.int32)).compile().as_text() or ""
    assert "hackmatrix_step" in text
    assert text.count("fusion(") < 10


@pytest.mark.thorough
def test_both_devices_of_a_machine_play() -> None:
    """A real process with two devices, each of which plays its share."""
    code = (
        "import jax, numpy as np, hackmatrix\n"
        "jax.config.update('jax_num_cpu_devices', 2)\n"
        "from hackmatrix.core.devices.mesh import SHARDED, mesh_of, on_devices\n"
        "env = hackmatrix.make(engine='native')\n"
        "def play(streams):\n"
        "    _, state = jax.vmap(env.reset_game, (0, None))(streams, 0)\n"
        "    step = jax.vmap(env.step, (None, 0, None))\n"
        "    return step(None, step(None, state, 2)[1], 0)[0]\n"
        "streams = np.arange(64, dtype=np.uint32)\n"
        "shared = on_devices(play, mesh_of(jax.devices()), SHARDED, SHARDED)(streams)\n"
        "assert len(shared.sharding.device_set) == 2\n"
        "np.testing.assert_array_equal(shared, jax.jit(play)(streams))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.slow  # compiles the game
@pytest.mark.parametrize("layout", ["tactical", "full"])
def test_training_ends_with_the_same_params_to_the_last_bit(layout: str) -> None:
    config = PPOConfig(num_envs=64, num_steps=32, total_timesteps=64 * 32 * 6, num_minibatches=4)
    network = NetworkConfig(hidden_dim=32)
    trained = []
    for engine in ("native", "jax"):
        env = hackmatrix.make(engine=engine, **SETTINGS | {"layout": layout})
        trainer = Trainer(env, config, network)
        trained.append(jax.device_get(trainer.gathered(trainer.run(trainer.init(0), 6))))
    ours, theirs = trained
    for name in ("learner", "sums", "reward_scale", "anomaly"):
        jax.tree.map(np.testing.assert_array_equal, getattr(ours, name), getattr(theirs, name))
    both = (state.games.env_state for state in trained)
    for one, other in zip(
        *([game(s, i).to_engine() for i in range(64)] for s in both), strict=True
    ):
        assert one == other
    assert ours.sums["train/mean_episode_return"][1] > 50  # games that ended
