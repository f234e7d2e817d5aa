"""`hackmatrix teach`: a search teaches the network that it searches with."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.agents.roster.names import A_NETWORK, MAX_SIMULATIONS, params_of
from hackmatrix.cli.arguments import parse
from hackmatrix.cli.buckets import local
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option
from hackmatrix.core.processes.typed_command import typed_command
from hackmatrix.learning.settings.config import MAX_SEED

if TYPE_CHECKING:
    from hackmatrix.learning.imitation.expert_iteration import Round

_EXAMPLE = """\
  hackmatrix teach checkpoints/my-run taught.npz
      plays 300,000 positions with search, in three rounds, and learns the search's choices"""


@dataclass(frozen=True)
class TeachOptions:
    """The command's options."""

    agent: str = option(dataclasses.MISSING, A_NETWORK)
    out: Path = option(dataclasses.MISSING, "new file of params (.npz), written after each round")
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)
    search: int = option(
        32, "simulations of the teacher before each action", at_least=1, at_most=MAX_SIMULATIONS
    )
    weight: float = option(3.0, "logits that a reward of 1 adds to the target policy", above=0)
    positions: int = option(300_000, "positions that the teacher plays in all rounds", at_least=1)
    rounds: int = option(3, "rounds; after each, the network becomes the teacher's", at_least=1)
    games: int = option(256, "games played in parallel", at_least=1, at_most=2**16)
    lr: float = option(1e-4, "learning rate of Adam; falls to 0 in each round", above=0)
    epochs: int = option(4, "passes over all positions so far, per round", at_least=1)
    batch: int = option(512, "positions per gradient step", at_least=1)
    seed: int = option(0, "random seed", at_least=0, at_most=MAX_SEED)

    def __post_init__(self) -> None:
        check(self)
        if self.out.suffix != ".npz":
            raise UserError(f"out must end in .npz, got {self.out}")
        if self.batch > self.positions // self.rounds:
            raise UserError(
                f"--batch {self.batch} is more than the {self.positions // self.rounds} positions "
                "of a round"
            )


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        TeachOptions,
        argv,
        command="hackmatrix teach",
        purpose="Trains a network on the choices of a search that uses it (expert iteration).",
        example=_EXAMPLE,
    )
    from hackmatrix.agents.networks.policy import load_policy
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.core.version import __version__
    from hackmatrix.learning.imitation.expert_iteration import Plan, teach
    from hackmatrix.research.exchange.formats import check_new
    from hackmatrix.runs.params import save_params

    check_new(options.out)
    enable_compilation_cache()
    policy = load_policy(params_of(options.agent, local))
    plan = Plan(**{name: getattr(options, name) for name in Plan._fields})

    def after(done: "Round") -> None:
        kept = ("environment", "config", "observation")
        about: dict[str, Any] = {name: policy.about[name] for name in kept if name in policy.about}
        taught = plan._asdict() | {"from": str(policy.path), "positions": done.positions}
        save_params(options.out, done.params, {**about, "version": __version__, "taught": taught})
        print(
            f"round {done.number}: {done.positions:,} positions after {done.seconds:,.0f} s, "
            f"{done.divergence:.3f} nats from the teacher",
            flush=True,
        )

    teach(policy, plan, after)
    print(f"next        {typed_command()} evaluate {options.out}")
    return 0
