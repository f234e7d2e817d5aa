"""Counts how often the loops of the JAX engine run that end when the last of the games is done.

`hackmatrix bench target` estimates speed with these numbers (`cloud/targets/loops.py`), which the
compiler can't know. Half the games walk to the exit, half act at random.

    python -m benchmarks.loops            # 2,048 games: some minutes
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

import hackmatrix
from benchmarks.command import run_command
from hackmatrix.core import machine
from hackmatrix.core.compiled.kept_programs import keep_programs_in
from hackmatrix.core.options import option
from hackmatrix.game.jaxgame import control_flow
from hackmatrix.research.bench.options import Options
from hackmatrix.research.bench.policies import random_actions, random_words, walks_to_exit

Array = jax.Array


@dataclass(frozen=True)
class LoopOptions(Options):
    """The options of the command."""

    num_envs: int = option(2_048, "games, those of one chip", at_least=16)
    num_steps: int = option(64, "counted steps, after as many others", at_least=1)


class Rounds(NamedTuple):
    """The mean rounds of each run of a loop, by its name, and of how many runs."""

    mean: dict[str, float]
    num_envs: int
    num_steps: int

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {**self._asdict(), **machine.machine(), "versions": machine.versions()}

    def text(self) -> str:
        """The figures as the table of `cloud/targets/loops.py`."""
        return "\n".join(f'    "{name}": {mean:.1f},' for name, mean in sorted(self.mean.items()))


_rounds: dict[str, list[int]] = defaultdict(list)


def _counted_while(goes_on: Callable[..., Any], body: Callable[..., Any], carry: Any) -> Any:
    """`lax.while_loop`, whose rounds are noted."""
    made: Any
    carry, made = lax.while_loop(
        lambda both: goes_on(both[0]), lambda both: (body(both[0]), both[1] + 1), (carry, 0)
    )
    _note(body, made)
    return carry


def _counted_repeat(first: int, end: Array, body: Callable[..., Any], carry: Any) -> Any:
    """`lax.fori_loop`, whose rounds are noted."""
    _note(body, jnp.asarray(end - first))
    return lax.fori_loop(first, end, body, carry)


def _note(body: Callable[..., Any], made: Array) -> None:
    name = control_flow.name_of(body)
    jax.debug.callback(lambda made: _rounds[name].append(int(made)), made)


def measure(options: LoopOptions) -> Rounds:
    """Plays the games and counts."""
    counted = SimpleNamespace(**vars(lax))
    counted.while_loop, counted.fori_loop = _counted_while, _counted_repeat
    setattr(control_flow, "lax", counted)  # noqa: B010, which mypy would refuse otherwise
    keep_programs_in(None)  # a program that calls back can't be kept
    env = hackmatrix.make(engine="jax")
    streams = jnp.arange(options.num_envs, dtype=jnp.uint32)
    carry = jax.jit(jax.vmap(env.reset_game, (0, None)))(streams, jnp.uint32(0))
    play = jax.jit(partial(_play, env, options.num_steps))
    carry = jax.block_until_ready(play(carry, jnp.uint32(0)))
    jax.effects_barrier()
    _rounds.clear()
    jax.block_until_ready(play(carry, jnp.uint32(1)))
    jax.effects_barrier()
    means = {name: statistics.mean(made) for name, made in _rounds.items()}
    return Rounds(means, options.num_envs, options.num_steps)


def _play(env: Any, num_steps: int, carry: Any, number: Array) -> Any:
    """The observations and states of the games after some steps."""
    half = len(carry[0]) // 2

    def step(carry: Any, at: Array) -> tuple[Any, None]:
        observation, state = carry
        bits = jax.vmap(env.action_bits)(state)
        words = random_words(jnp.arange(len(bits)), number, at)
        walked = walks_to_exit(observation[:half], bits[:half], words[:half])
        action = jnp.concatenate([walked, random_actions(bits[half:], words[half:])])
        return jax.vmap(env.step, (None, 0, 0))(None, state, action)[:2], None

    return jax.lax.scan(step, carry, jnp.arange(num_steps, dtype=jnp.uint32))[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "loops",
        measure,
        LoopOptions,
        argv,
        purpose="Counts how often the loops run that end when the last game is done.",
        example="  python -m benchmarks.loops --num-envs 8192\n      in a step of 8,192 games",
    )


if __name__ == "__main__":
    sys.exit(main())
