"""Compares the speed of this environment with those of other libraries, measured in turn.

Each plays random valid actions. A step includes the observation and auto-reset, as the library
implements them. Each has the batch size that is fastest for it on two cores.
"""

import importlib.metadata
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.command import RESULTS, run_command
from hackmatrix.core import machine
from hackmatrix.core.devices.mesh import (
    REPLICATED,
    SHARDED,
    devices_for,
    first_index,
    on_devices,
    psum,
    use_all_cores,
)
from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import need
from hackmatrix.core.options import option
from hackmatrix.research.bench.env import EnvBench, random_actions, random_words
from hackmatrix.research.bench.options import Options
from hackmatrix.research.figures import COLOURS, panels, svg

Array = jax.Array
Tree = Any

_FIRST_STEPS = 8  # timed to find the number of steps in a repeat


@dataclass(frozen=True)
class PeersOptions(Options):
    """The options of the command."""

    output: Path = option(RESULTS, "folder for the table and the plot")
    repeats: int = option(7, "timed repeats of each, in turn", at_least=1)
    seconds: float = option(0.5, "about how long one repeat takes", above=0)


class Peer(Protocol):
    """An environment of another library, `num_envs` games at once."""

    def reset(self, keys: Array) -> Tree:
        """The state of new games, each from its own key."""

    def mask(self, state: Tree) -> Array:
        """bool[num_envs, actions], the valid actions."""

    def step(self, keys: Array, state: Tree, actions: Array) -> tuple[Tree, Tree]:
        """The state after an action and auto-reset, and everything else that the step returns."""


class Craftax:
    """Craftax-Classic-Symbolic-v1."""

    def __init__(self) -> None:
        from craftax.craftax_env import make_craftax_env_from_name

        self.env = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=True)
        self.params = self.env.default_params

    def reset(self, keys: Array) -> Tree:
        """See `Peer`."""
        return jax.vmap(self.env.reset, (0, None))(keys, self.params)[1]

    def mask(self, state: Tree) -> Array:
        """All actions are valid."""
        return _all_valid(state, self.env.action_space(self.params).n)

    def step(self, keys: Array, state: Tree, actions: Array) -> tuple[Tree, Tree]:
        """See `Peer`."""
        step = jax.vmap(self.env.step, (0, 0, 0, None))
        observation, state, reward, done, _ = step(keys, state, actions, self.params)
        return state, (observation, reward, done)


class Gymnax:
    """Breakout-MinAtar."""

    def __init__(self) -> None:
        import gymnax

        self.env, self.params = gymnax.make("Breakout-MinAtar")

    def reset(self, keys: Array) -> Tree:
        """See `Peer`."""
        return jax.vmap(self.env.reset, (0, None))(keys, self.params)[1]

    def mask(self, state: Tree) -> Array:
        """All actions are valid."""
        return _all_valid(state, self.env.num_actions)

    def step(self, keys: Array, state: Tree, actions: Array) -> tuple[Tree, Tree]:
        """See `Peer`."""
        step = jax.vmap(self.env.step, (0, 0, 0, None))
        observation, state, *rest, _ = step(keys, state, actions, self.params)
        return state, (observation, rest)


class Pgx:
    """2048."""

    def __init__(self) -> None:
        import pgx
        from pgx.experimental.wrappers import auto_reset

        self.env = pgx.make("2048")
        self._step = auto_reset(self.env.step, self.env.init)

    def reset(self, keys: Array) -> Tree:
        """See `Peer`."""
        return jax.vmap(self.env.init)(keys)

    def mask(self, state: Tree) -> Array:
        """See `Peer`."""
        mask: Array = state.legal_action_mask
        return mask

    def step(self, keys: Array, state: Tree, actions: Array) -> tuple[Tree, Tree]:
        """See `Peer`."""
        state = jax.vmap(self._step)(state, actions, keys)
        return state, (state.observation, state.rewards, state.terminated)


class Jumanji:
    """Game2048-v1. The state holds its own random keys."""

    def __init__(self) -> None:
        import jumanji
        from jumanji.wrappers import AutoResetWrapper

        self.env = AutoResetWrapper(jumanji.make("Game2048-v1"))

    def reset(self, keys: Array) -> Tree:
        """See `Peer`."""
        return jax.vmap(self.env.reset)(keys)[0]

    def mask(self, state: Tree) -> Array:
        """See `Peer`."""
        mask: Array = state.action_mask
        return mask

    def step(self, keys: Array, state: Tree, actions: Array) -> tuple[Tree, Tree]:
        """See `Peer`."""
        state, step = jax.vmap(self.env.step)(state, actions)
        return state, (step.observation, step.reward, step.discount, step.step_type)


def _all_valid(state: Tree, actions: int) -> Array:
    return jnp.ones((jax.tree.leaves(state)[0].shape[0], actions), bool)


class Entry(NamedTuple):
    """An environment of another library."""

    name: str
    package: str
    make: Callable[[], Peer]
    num_envs: int  # on each device; the fastest of 64, 256, 1,024 ... 65,536


PEERS = (
    Entry("craftax Classic, symbolic", "craftax", Craftax, 64),
    Entry("gymnax Breakout-MinAtar", "gymnax", Gymnax, 4_096),
    Entry("pgx 2048", "pgx", Pgx, 4_096),
    Entry("jumanji Game2048", "jumanji", Jumanji, 4_096),
)
# name: play and observation
OURS = {
    "HackMatrix": ("random", "compact"),
    "HackMatrix, float features": ("random", "features"),
    "HackMatrix, harder play": ("harder", "compact"),
    "HackMatrix, harder play, float features": ("harder", "features"),
}


class PeerBench:
    """Games of a peer in progress: `repeat` times some of their steps."""

    def __init__(self, peer: Peer, num_envs: int, seconds: float) -> None:
        """Starts the games and finds the number of steps that take about `seconds`."""
        mesh = devices_for(jax.device_count())
        self.num_envs = num_envs * mesh.size
        self.rates: list[float] = []
        self._peer = peer
        self._share = num_envs
        keys = jax.random.split(jax.random.key(0), self.num_envs)
        self._state = on_devices(peer.reset, mesh, SHARDED, SHARDED)(keys)
        self._timed = on_devices(
            self._run,
            mesh,
            (SHARDED, REPLICATED, REPLICATED),
            (SHARDED, REPLICATED),
            donate_argnums=0,
        )
        self._runs = 0
        self._steps = 1
        self._repeat()  # compiles
        self._steps = _FIRST_STEPS
        while (took := self._repeat()) < seconds / 2:
            self._steps = max(self._steps + 1, int(self._steps * min(seconds / took, 8)))

    def repeat(self) -> float:
        """Times one run and returns its steps per second."""
        self.rates.append(self.num_envs * self._steps / self._repeat())
        return self.rates[-1]

    def _repeat(self) -> float:
        self._runs += 1
        start = time.perf_counter()
        run = self._timed(self._state, jnp.uint32(self._runs), jnp.int32(self._steps))
        self._state, _ = jax.block_until_ready(run)
        return time.perf_counter() - start

    def _run(self, state: Tree, run: Array, steps: Array) -> tuple[Tree, Tree]:
        """Runs `steps` steps of all games; returns the state and sums over all returned values."""
        first = first_index(self._share)
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(1), run), first)
        games = first + jnp.arange(self._share)

        def step(number: Array, carry: tuple[Tree, Tree]) -> tuple[Tree, Tree]:
            state, sums = carry
            mask = self._peer.mask(state)
            bits = jnp.sum(mask.astype(jnp.uint32) << np.arange(mask.shape[1]), axis=1)
            words = random_words(games, run, number.astype(jnp.uint32))
            keys = jax.random.split(jax.random.fold_in(key, number), self._share)
            state, returned = self._peer.step(keys, state, random_actions(bits, words))
            return state, jax.tree.map(lambda total, x: total + _sum(x), sums, returned)

        keys = jax.eval_shape(lambda: jax.random.split(key, self._share))
        actions = jax.ShapeDtypeStruct((self._share,), jnp.int32)
        _, returned = jax.eval_shape(self._peer.step, keys, state, actions)
        nothing = jax.tree.map(
            lambda x: jnp.zeros_like(_sum(jnp.zeros(x.shape, x.dtype))), returned
        )
        state, sums = jax.lax.fori_loop(0, steps, step, (state, nothing))
        return state, psum(sums)


def _sum(x: Array) -> Array:
    """The sum over the games; integers and bools as uint32."""
    dtype = x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else jnp.uint32
    return jnp.sum(x, axis=0, dtype=dtype)


class Comparison(NamedTuple):
    """Speed of every environment."""

    rates: dict[str, tuple[int, list[float]]]  # games at once, and steps/s of each repeat
    versions: dict[str, str]
    output: Path

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "environments": [
                {
                    "name": name,
                    "num_envs": num_envs,
                    "steps_per_second": statistics.median(rates),
                    "repeats": len(rates),
                    "median": statistics.median(rates),
                    "min": min(rates),
                    "max": max(rates),
                }
                for name, (num_envs, rates) in self.rates.items()
            ],
            **machine.machine(),
            "versions": self.versions,
        }

    def table(self) -> str:
        """The figures as a Markdown table."""
        figures = self.as_dict()
        lines = [
            "| environment | games at once | steps/s | least | most |",
            "|---|---:|---:|---:|---:|",
        ]
        lines += [
            f"| {it['name']} | {it['num_envs']:,} | {it['median']:,.0f} | {it['min']:,.0f} | "
            f"{it['max']:,.0f} |"
            for it in figures["environments"]
        ]
        about = machine.line(figures, figures["versions"])
        repeats = figures["environments"][0]["repeats"]
        return "\n".join([*lines, "", f"Medians of {repeats} repeats in turn on {about}."])

    def text(self) -> str:
        """The table, and the folder of the files."""
        return f"{self.table()}\nwritten to {self.output}"


def measure(options: PeersOptions) -> Comparison:
    """Times all environments in turn; writes `peers.json`, `peers.md` and `peers.svg`.

    Raises:
        UserError: a library is not installed.
        ReplayError: the Python engine plays the timed games of HackMatrix differently.
    """
    need("matplotlib")
    use_all_cores()
    peers = [_made(entry) for entry in PEERS]
    ours = {name: EnvBench(play=play, observation=made) for name, (play, made) in OURS.items()}
    benches: dict[str, EnvBench | PeerBench] = {**ours}
    for entry, peer in zip(PEERS, peers, strict=True):
        benches[entry.name] = PeerBench(peer, entry.num_envs, options.seconds)
    for _ in range(options.repeats):
        for bench in benches.values():
            bench.repeat()
    for mine in ours.values():
        mine.result()
    rates = {name: (bench.num_envs, bench.rates) for name, bench in benches.items()}
    versions = machine.versions(*(entry.package for entry in PEERS))
    result = Comparison(rates, versions, options.output)
    _write(result, list(ours))
    return result


def _made(entry: Entry) -> Peer:
    try:
        importlib.metadata.version(entry.package)
        return entry.make()
    except ImportError as error:
        raise UserError(f"{entry.name} cannot be run ({error}); `make bench` installs it") from None


def _write(result: Comparison, ours: Sequence[str]) -> None:
    result.output.mkdir(parents=True, exist_ok=True)
    figures = result.as_dict()
    (result.output / "peers.json").write_text(json.dumps(figures, indent=1) + "\n")
    (result.output / "peers.md").write_text(result.table() + "\n")
    entries = figures["environments"]
    names, rates = [it["name"] for it in entries], [it["median"] for it in entries]
    title = f"Random valid actions, {figures['processor']}, {figures['cores']} cores"
    figure, (axes,) = panels(title, height=0.6 + 0.42 * len(names))
    bars = axes.barh(names, rates, color=[COLOURS[0 if name in ours else 5] for name in names])
    axes.bar_label(bars, [f" {rate:,.0f}" for rate in rates], fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(min(rates) / 3, max(rates) * 6)  # room for the labels
    axes.invert_yaxis()
    axes.set_xlabel("environment steps per second")
    (result.output / "peers.svg").write_text(svg(figure))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "peers",
        measure,
        PeersOptions,
        argv,
        purpose="Compares this environment with those of other libraries (`make bench`).",
        example="--repeats 3\n      a quicker look",
    )


if __name__ == "__main__":
    sys.exit(main())
