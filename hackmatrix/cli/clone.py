"""`hackmatrix clone`: a network learns from recorded games, as a start for training."""

import dataclasses
import json
import shlex
import time
from dataclasses import dataclass
from pathlib import Path

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.cli.arguments import parse
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option
from hackmatrix.core.processes import command_name
from hackmatrix.learning.settings.config import MAX_SEED

_EXAMPLE = """\
  hackmatrix clone scripted-games cloned.npz --config quick
  hackmatrix train --config quick --init-from cloned.npz
      clones the scripted player, and trains on from there"""


@dataclass(frozen=True)
class CloneOptions:
    """The command's options."""

    data: Path = option(dataclasses.MISSING, "folder of a data set")
    out: Path = option(dataclasses.MISSING, "new file of params (.npz)")
    config: Path | None = option(
        None,
        "settings of the run that will start from these params (network, observation, reward): a "
        "file or a name; default as for `hackmatrix train`",
    )
    init_from: Path | None = option(
        None, "params to start from, such as the recorded agent's; their value is learned anew"
    )
    env: str | None = option(
        None, "environment of the data set, if it is your own (module:function)"
    )
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)
    positions: int = option(500_000, "maximum number of positions, in whole games", at_least=1)
    lr: float = option(1e-3, "learning rate of Adam; falls to 0", above=0)
    epochs: int = option(4, "passes over the positions", at_least=1)
    batch: int = option(512, "positions per gradient step", at_least=1)
    seed: int = option(0, "random seed", at_least=0, at_most=MAX_SEED)
    json: bool = option(False, "print one JSON object")

    def __post_init__(self) -> None:
        check(self)
        if self.out.suffix != ".npz":
            raise UserError(f"out must end in .npz, got {self.out}")


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        CloneOptions,
        argv,
        command="hackmatrix clone",
        purpose="Trains a network on the actions and returns of recorded games (behavior cloning).",
        example=_EXAMPLE,
    )
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.core.version import __version__
    from hackmatrix.environments.registry import check_code
    from hackmatrix.learning.settings.config_file import default_settings, read_config
    from hackmatrix.learning.settings.resolve import resolve
    from hackmatrix.research.datasets.clone import ClonePlan, clone
    from hackmatrix.research.datasets.folder import open_data_set
    from hackmatrix.research.exchange.formats import check_new
    from hackmatrix.runs.params import save_params

    check_new(options.out)
    if options.config is None:  # as `hackmatrix train` would start from them
        in_file = default_settings({"env": open_data_set(options.data).facts.environment})
    else:
        in_file = read_config(options.config)
    given = {name: getattr(options, name) for name in ("env", "architecture", "init_from")}
    config, _ = resolve({name: x for name, x in given.items() if x is not None}, in_file)
    check_code(config.environment.name, options.env, f"{options.config}: trains on")
    config.network.check_code(f"{options.config}: its network is")
    data = open_data_set(options.data)
    enable_compilation_cache()
    began = time.monotonic()
    plan = ClonePlan(**{name: getattr(options, name) for name in ClonePlan._fields})
    cloned = clone(data, config, plan)
    results = {name: value for name, value in cloned._asdict().items() if name != "params"}
    settings = config.as_dict()
    kept = ("observation", "reward", "win_worth", "program_worth", "gamma", "normalize_rewards")
    about = {
        "version": __version__,
        "environment": data.facts.environment,
        "config": {
            **dataclasses.asdict(config.network),
            **{name: settings[name] for name in kept},
        },
        "cloned": {"data": dataclasses.asdict(data.facts), **plan._asdict(), **results},
    }
    save_params(options.out, cloned.params, about)
    if options.json:
        print(json.dumps({"params": str(options.out), **results}))
        return 0
    print(
        f"{options.out}: {cloned.positions:,} positions of {cloned.games:,} games learned in "
        f"{time.monotonic() - began:,.0f} s\n"
        f"held out    {cloned.agreement:.1%} of actions are the network's first choice, "
        f"{cloned.cross_entropy:.3f} nats; values {cloned.value_error:.3f} off, of returns that "
        f"deviate by {cloned.returns:.3f}"
    )
    with_config = f"--config {shlex.quote(str(options.config))} " if options.config else ""
    line = [*config.code_flags, "--init-from", str(options.out)]
    print(f"next        {command_name()} train {with_config}{shlex.join(line)}")
    return 0
