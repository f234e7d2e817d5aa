"""Agreement beyond lockstep games: any legal state, any action, any features, and the dice."""

import random
import subprocess
import sys
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from lockstep_play import GAMES, play
from strategies import legal_states

from hackmatrix.game.engine import Game, dice
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.saving import state_from_dict
from hackmatrix.game.foresight.features import features as python_features
from hackmatrix.game.jaxgame import dice as jax_dice
from hackmatrix.game.jaxgame.observation import features


class Drawn(list):
    """States drawn by hypothesis, without their long repr; `play` shows the one that fails."""

    def __repr__(self) -> str:
        return f"{len(self)} states"


@pytest.mark.slow
@settings(max_examples=12, phases=(Phase.explicit, Phase.generate))
@given(st.lists(legal_states(), min_size=4, max_size=4).map(Drawn), st.integers(0, 2**32 - 1))
def test_any_legal_state_and_any_action(states: "Drawn", seed: int) -> None:
    """Every action is tried on each state, valid or not; the games go on for a step if they can."""
    rng = random.Random(seed)
    turn = iter(range(10 * GAMES))

    def policy(rng: random.Random, _: Game, valid: list[int]) -> int:
        number = next(turn)
        return number // 4 % 28 if number < GAMES else rng.choice(valid)

    play([state_from_dict(states[i % 4]) for i in range(GAMES)], policy, rng, steps=3)


@pytest.mark.thorough
@settings(max_examples=10)
@given(legal_states(ended=True), st.sampled_from(["classic", "full"]))
def test_features_of_any_legal_state(data: dict, layout: str) -> None:
    record = observe(state_from_dict(data))
    expected = np.array(python_features(record, layout), np.float32)
    got = features(jnp.frombuffer(record, jnp.uint8), layout)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_the_dice_are_the_same() -> None:
    words = [0, 1, 77, 2**31, 2**32 - 1]
    cases = list(product(words, words, words, [0, 15], [0, 1, 65_535]))
    got = [
        int(jax_dice.draw(jnp.uint32(s), jnp.uint32(e), jnp.uint32(c), int(k), int(i)))
        for s, e, c, k, i in cases[::17]
    ]
    assert got == [dice.draw(*case) for case in cases[::17]]


def test_bounded_numbers_are_the_same() -> None:
    words = np.array([0, 1, 65_535, 65_536, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    for n in (1, 2, 3, 7, 20, 36, 68, 65_535):
        got = jax_dice.to_range(jnp.asarray(words), n)
        assert got.tolist() == [dice.to_range(int(word), n) for word in words]


@pytest.mark.thorough
def test_importing_starts_no_device() -> None:
    """Nothing is put on a device before something is asked of it."""
    code = (
        "import hackmatrix.environments.hackmatrix.env, jax\n"
        "jax.config.update('jax_num_cpu_devices', 2)"  # an error once there are devices
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert jax.devices()
