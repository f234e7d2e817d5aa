"""Estimates the speed of a training on a target that is not here, from its compiled programs.

Nothing is measured: the report says what is assumed.
"""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hackmatrix.cloud.targets import compiling
from hackmatrix.cloud.targets.chips import AS_OF, CHIPS, Target, target_of
from hackmatrix.cloud.targets.compiling import devices_of
from hackmatrix.cloud.targets.hlo import HloEvent
from hackmatrix.cloud.targets.options import TargetOptions
from hackmatrix.core import machine
from hackmatrix.game import native
from hackmatrix.game.jaxgame.mosaic import GAMES_OF_A_BLOCK
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import read_config
from hackmatrix.learning.settings.resolve import resolve


@dataclass(frozen=True)
class Costs:
    """Assumed seconds of what the compiler does not estimate."""

    by_index: float  # a kernel that gathers or scatters, besides its cycles; on TPUs
    exchange: float  # an all-reduce, besides the time that its bytes take
    kernel: float  # starting a kernel; on GPUs, where the compiler estimates no cycles
    choice: float  # a condition on which the host waits; on GPUs
    products: float  # part of the peak rate that products reach; on GPUs
    operations: float  # vector operations of a kernel of Pallas in a cycle; on TPUs


# Speeds from low to high.
COSTS = {
    "low": Costs(
        by_index=10e-6, exchange=40e-6, kernel=6e-6, choice=20e-6, products=0.2, operations=1.2
    ),
    "likely": Costs(
        by_index=2e-6, exchange=20e-6, kernel=3.5e-6, choice=10e-6, products=0.4, operations=2.5
    ),
    "high": Costs(
        by_index=0.0, exchange=10e-6, kernel=2e-6, choice=5e-6, products=0.6, operations=3.5
    ),
}
_PASSES = 3  # times that a GPU's kernel moves as many bytes as its result has
_SIZES = (1, 4, 16, 32)  # chips of larger and smaller TPUs of which the speed is told
_ROUNDED = 100_000_000  # steps of the training of which time and price are told
_PARTS = (
    "step kernel",
    "tactical kernel",
    "undo",
    "begin step",
    "enemies",
    "finish step",
    "new stages",
)


class Part(NamedTuple):
    """What a part of an update takes on one chip."""

    kernels: float
    cycles: float  # by the compiler's estimate; 0 on GPUs, of which it makes none
    seconds: float  # likely ones, with what the compiler does not estimate


@dataclass(frozen=True)
class TargetReport:
    """What was compiled for a target, and the speed that follows."""

    target: Target
    config: TrainConfig
    name: str  # of the configuration
    programs: dict[str, compiling.CompiledProgram]
    versions: dict[str, str]
    operations: dict[str, float]  # of a block of games, by kernel of Pallas; none if XLA compiles

    @property
    def update(self) -> compiling.CompiledProgram:
        """The program of a whole update."""
        return self.programs["update"]

    @property
    def all_reduces(self) -> tuple[float, float]:
        """All-reduces of an update, and their bytes together."""
        exchanges = [event for event in self.update.events if event.category == "all-reduce"]
        return sum(event.times for event in exchanges), sum(
            event.times * event.size for event in exchanges
        )

    def seconds(self, level: str, chips: int | None = None) -> float:
        """Estimated seconds of an update, with as many games on each chip as here.

        Args:
            level: a key of `COSTS`.
            chips: number of chips; by default the target's.
        """
        return sum(self._by_part(level, chips).values())

    def steps_per_second(self, level: str, chips: int | None = None) -> float:
        """Estimated steps of all games in a second; arguments as `seconds`."""
        share = (chips or self.target.num_chips) / self.target.num_chips
        return self.config.learning.batch_size * share / self.seconds(level, chips)

    def by_chips(self) -> dict[int, float]:
        """Likely steps a second of TPUs with other numbers of chips, as many games on each."""
        sizes = _SIZES if self.target.is_tpu else ()
        return {chips: self.steps_per_second("likely", chips) for chips in sizes}

    def parts(self) -> dict[str, Part]:
        """The parts of an update, by name."""
        kernels, cycles = defaultdict[str, float](float), defaultdict[str, float](float)
        for event in self.update.events:
            if event.category == "kernel":
                kernels[_part(event)] += event.times
                cycles[_part(event)] += event.times * (event.cycles or 0)
        seconds = self._by_part("likely")
        return {part: Part(kernels[part], cycles[part], seconds[part]) for part in seconds}

    def most_games(self) -> int:
        """Games of which an update fits into a chip's memory, as a power of two: by proportion."""
        games = self.config.learning.num_envs // self.target.num_chips
        most = games * self.target.chip.memory // max(1, self.update.memory)
        return 1 << max(0, most.bit_length() - 1)

    def fits(self) -> list[str]:
        """Kinds of chips whose memory holds an update of as many games."""
        return [name for name, chip in CHIPS.items() if chip.memory >= self.update.memory]

    def _by_part(self, level: str, chips: int | None = None) -> dict[str, float]:
        costs, seconds = COSTS[level], defaultdict[str, float](float)
        count = self.target.num_chips if chips is None else chips
        floor = min((e.cycles for e in self.update.events if e.cycles), default=0)
        for event in self.update.events:
            seconds[_part(event)] += event.times * self._seconds_of(event, costs, count, floor)
        if not self.target.is_tpu:
            rate = self.target.chip.flops * costs.products
            seconds["products"] = self.update.flops / rate
        return dict(seconds)

    def _seconds_of(self, event: HloEvent, costs: Costs, chips: int, floor: int) -> float:
        chip = self.target.chip
        if event.category == "all-reduce":
            moved = 2 * (chips - 1) / chips * event.size
            return costs.exchange + moved / (2 * chip.link) if chips > 1 else 0.0
        if event.category == "choice":
            return 0.0 if self.target.is_tpu else costs.choice
        if self.target.is_tpu:
            cycles = self._cycles_of_blocks(event, costs) or event.cycles or floor
            return cycles / (chip.clock * 1e9) + costs.by_index * event.by_index
        return costs.kernel + _PASSES * event.size / chip.bandwidth

    def _cycles_of_blocks(self, event: HloEvent, costs: Costs) -> float:
        """Those of a kernel of Pallas: each core of a chip has its blocks of games in turn."""
        if not event.path.endswith("pallas_call"):
            return 0.0
        games = self.config.learning.num_envs / self.target.num_chips
        blocks = math.ceil(games / GAMES_OF_A_BLOCK / self.target.chip.cores)
        return blocks * self.operations[_part(event)] / costs.operations

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        learning = self.config.learning
        exchanges, moved = self.all_reduces
        likely = self.steps_per_second("likely")
        return {
            "target": self.target.name,
            "chips": self.target.num_chips,
            "config": self.name,
            "num_envs": learning.num_envs,
            "num_steps": learning.num_steps,
            "minibatches": learning.num_minibatches,
            "epochs": learning.update_epochs,
            "dtype": self.config.network.dtype,
            "programs": {
                name: {
                    "cpu_seconds": program.cpu_seconds,
                    "bytes": program.memory,
                    "flops": program.flops,
                    "kernels": program.kernels(),
                    "kernels_by_index": program.kernels(by_index=True),
                }
                for name, program in self.programs.items()
            },
            "all_reduces": exchanges,
            "all_reduced_bytes": moved,
            "parts": {name: part._asdict() for name, part in self.parts().items()},
            "steps_per_second": {level: self.steps_per_second(level) for level in COSTS},
            "steps_per_second_by_chips": self.by_chips(),
            "costs": {level: dataclasses.asdict(costs) for level, costs in COSTS.items()},
            "hours_per_100M": _ROUNDED / likely / 3600,
            "dollars_per_100M": self._dollars(_ROUNDED / likely),
            "fits": self.fits(),
            "most_games_of_a_chip": self.most_games(),
            "operations_of_a_block": self.operations,
            "unknown_loops": self.update.unknown_loops,
            "prices_of": AS_OF.isoformat(),
            "versions": self.versions,
        }

    def text(self) -> str:
        """The figures as text."""
        learning, chip = self.config.learning, self.target.chip
        exchanges, moved = self.all_reduces
        most = self.most_games()
        rates = {level: self.steps_per_second(level) for level in COSTS}
        rows = [("program", "CPU s", "MB a chip", "GFLOP", "kernels", "by index")]
        for name, program in self.programs.items():
            by_index = program.kernels(by_index=True)
            rows.append(
                (
                    name,
                    f"{program.cpu_seconds:.0f}",
                    f"{program.memory / 1e6:,.0f}",
                    f"{program.flops / 1e9:,.1f}",
                    f"{program.kernels():,.0f}",
                    f"{by_index:,.0f}",
                )
            )
        parts: list[tuple[str, ...]] = [("part", "kernels", "cycles", "microseconds")]
        for name, part in self.parts().items():
            steps = 1 if name in ("learning", "products", "rest") else learning.num_steps
            what = f"{name}, {'an update' if steps == 1 else 'a step'}"
            figures = part.kernels, part.cycles, part.seconds * 1e6
            parts.append((what, *(f"{figure / steps:,.0f}" for figure in figures)))
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return "\n".join(
            [
                f"{self.target.name}: {self.target.num_chips} x {self.target.family}, {self.name}, "
                f"{learning.num_envs:,} games x {learning.num_steps} steps, "
                f"{learning.update_epochs} epochs of {learning.num_minibatches} minibatches, "
                f"{self.config.network.dtype}",
                "",
                *_table(rows),
                "",
                *_table(parts),
                "",
                f"kernels a step: {self.programs['environment step'].kernels():,.0f}, of the "
                "environment by itself",
                f"all-reduces of an update: {exchanges:,.0f}, {moved / 1e6:,.0f} MB",
                f"memory of an update: {self.update.memory / 1e6:,.0f} of {chip.memory / 1e6:,.0f} "
                f"MB a chip; it fits a chip of {', '.join(self.fits()) or 'none'}",
                f"largest batch, by proportion: {most:,} games a chip, "
                f"{most * self.target.num_chips * learning.num_steps:,} transitions",
                f"estimate: {rates['likely']:,.0f} steps/s ({rates['low']:,.0f} to "
                f"{rates['high']:,.0f}); nothing was measured",
                *self._assumptions(),
                *self._sizes(),
                self._price(rates),
                f"{versions}; facts of chips and prices of {AS_OF.isoformat()}",
                *(f"counted once, of unknown length: {loop}" for loop in self.update.unknown_loops),
            ]
        )

    def _assumptions(self) -> list[str]:
        costs = [COSTS[level] for level in ("low", "likely", "high")]

        def cost_range(field: str, unit: float, of: str) -> str:
            return " / ".join(f"{getattr(cost, field) * unit:g}" for cost in costs) + of

        if self.target.is_tpu:
            return [
                f"  = the compiler's cycles at {self.target.chip.clock} GHz, "
                f"{cost_range('by_index', 1e6, ' us')} more for a kernel that gathers or scatters,",
                f"  {cost_range('exchange', 1e6, ' us')} for an all-reduce besides its bytes at "
                f"{self.target.chip.link / 1e9:g} GB/s a link; loops as in random play",
                *self._counted(cost_range("operations", 1, " a cycle")),
            ]
        return [
            f"  = {cost_range('kernel', 1e6, ' us')} to start a kernel, "
            f"{cost_range('choice', 1e6, ' us')} for a condition, products at",
            f"  {cost_range('products', 100, ' %')} of the peak; loops as in random play",
        ]

    def _counted(self, rate: str) -> list[str]:
        if not self.operations:
            return []
        kernels = ", ".join(f"{name} {x:,.0f}" for name, x in self.operations.items())
        return [f"  vector operations of a block of 1,024 games, counted: {kernels}; {rate}"]

    def _sizes(self) -> list[str]:
        if not (rates := self.by_chips()):
            return []
        sizes = ", ".join(f"{rate:,.0f} on {chips}" for chips, rate in rates.items())
        return [f"with as many games a chip, likely steps/s: {sizes}"]

    def _price(self, rates: dict[str, float]) -> str:
        times = {level: _ROUNDED / rate for level, rate in rates.items()}
        took = f"100M steps take {_time(times['likely'])} ({_time(times['high'])} to "
        took += f"{_time(times['low'])})"
        if (dollars := self._dollars(times["likely"])) is None:
            return took
        return f"{took} and cost ${dollars:.2f} on demand, without start and compiling"

    def _dollars(self, seconds: float) -> float | None:
        price = self.target.chip.dollars
        return None if price is None else price * self.target.num_chips * seconds / 3600


def measure(options: TargetOptions, programs: Sequence[str] = compiling.PROGRAMS) -> TargetReport:
    """Compiles programs for the target, the update among them, and estimates."""
    target = target_of(options.target)
    devices = devices_of(target)
    flags = {} if options.num_envs is None else {"num_envs": options.num_envs}
    config, _ = resolve(flags, read_config(options.config))
    own = "pallas" if target.is_tpu else "native" if native.available else "jax"
    engine = "jax" if options.kernels == "xla" else own
    if engine == "native":
        from hackmatrix.game.native.cuda import register_handlers

        register_handlers()  # a program is compiled for them though nothing can run it here
    programs_by_name = compiling.compile_programs(target, devices, config, programs, engine)
    versions = machine.versions("libtpu" if target.is_tpu else "jax-cuda12-pjrt")
    operations = compiling.operations(target.chip.product) if engine == "pallas" else {}
    return TargetReport(target, config, str(options.config), programs_by_name, versions, operations)


def _part(event: HloEvent) -> str:
    names = event.path.split("/")
    for part in _PARTS:
        if part in names:
            return part
    if "rollout" in names:
        return "network"
    return "learning" if "learning" in names else "rest"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
