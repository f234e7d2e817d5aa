"""`hackmatrix sb3`: train with Stable-Baselines3, and watch what was trained."""

from hackmatrix.cli.arguments import parse
from hackmatrix.core.errors import UserError

_HELP = """\
usage: hackmatrix sb3 {train,watch} ...

MaskablePPO of Stable-Baselines3 on the game: slower than `hackmatrix train`.

  train  train an agent
  watch  watch a saved agent play

`hackmatrix sb3 train --help` and `hackmatrix sb3 watch --help` explain each and show an example.
example:
  hackmatrix sb3 train --preset tactical --timesteps 500000 --no-wandb
"""


def main(argv: list[str]) -> int:
    """Runs the command."""
    name, *rest = argv or [""]
    commands = {"train": train, "watch": watch}
    if name in commands:
        return commands[name](rest)
    if name in ("-h", "--help"):
        print(_HELP, end="")
        return 0
    raise UserError(f"expected train or watch, got {name!r}: see `hackmatrix sb3 --help`")


def train(argv: list[str]) -> int:
    """`hackmatrix sb3 train`."""
    from hackmatrix.integrations.sb3.options import Sb3TrainOptions

    options = parse(
        Sb3TrainOptions,
        argv,
        command="hackmatrix sb3 train",
        purpose="Trains MaskablePPO of Stable-Baselines3; writes models, logs and a history.",
        example="  hackmatrix sb3 train --preset tactical --timesteps 500000 --no-wandb",
    )
    from hackmatrix.integrations.sb3 import train as work

    return work.train(options)


def watch(argv: list[str]) -> int:
    """`hackmatrix sb3 watch`; the model may be given without its flag."""
    from hackmatrix.integrations.sb3.options import SB3WatchOptions

    if argv and not argv[0].startswith("-"):
        argv = ["--model", *argv]
    options = parse(
        SB3WatchOptions,
        argv,
        command="hackmatrix sb3 watch",
        purpose="Plays games with a saved model, without sampling, and shows them on a terminal.",
        example="  hackmatrix sb3 watch models/hackmatrix-nov22-26-1/best_model.zip --episodes 3",
    )
    from hackmatrix.integrations.sb3 import watch as work

    return work.watch(options)
