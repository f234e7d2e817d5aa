"""`hackmatrix bench`: measures speed."""

import dataclasses
import json
from dataclasses import dataclass

from hackmatrix.cli.arguments import parse
from hackmatrix.errors import UserError
from hackmatrix.options import check_ranges, option

_EXAMPLE = """\
  hackmatrix bench env --num-envs 1024
      steps per second of 1024 games under random valid actions"""


@dataclass(frozen=True)
class BenchOptions:
    """The command's arguments."""

    what: str = option(dataclasses.MISSING, "what to measure: `env`, the environment alone")
    num_envs: int = option(2_048, "games at once", at_least=1)
    num_steps: int = option(32, "steps of each game in a repeat", at_least=1)
    repeats: int = option(5, "timed repeats, after one that compiles", at_least=1)
    json: bool = option(False, "print one JSON object")

    def __post_init__(self) -> None:
        check_ranges(self)


def main(argv: list[str]) -> int:
    """Runs the command."""
    options, _ = parse(
        BenchOptions,
        argv,
        command="hackmatrix bench",
        purpose="Measures speed: observations, masks, reward parts and auto-reset included.",
        example=_EXAMPLE,
    )
    if options.what != "env":
        raise UserError(f"nothing to measure is called {options.what!r}; there is env")
    from hackmatrix.bench.env import measure

    speed = measure(options.num_envs, options.num_steps, options.repeats)
    figures = speed.as_dict(options.num_envs)
    if options.json:
        print(json.dumps(figures))
        return 0
    print(
        f"{figures['median']:,.0f} env steps/s (median of {options.repeats}; "
        f"{figures['min']:,.0f} to {figures['max']:,.0f}), {options.num_envs} games on "
        f"{figures['device']}, jax {figures['versions']['jax']}\n"
        f"first result after {speed.compile_seconds:.1f} s; a game lasts "
        f"{speed.mean_episode_length:.1f} steps, {speed.mean_enemies:.1f} enemies on a board, "
        f"stage {speed.mean_stage:.2f}"
    )
    return 0
