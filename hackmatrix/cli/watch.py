"""`hackmatrix watch`: an agent at the controls, in a browser."""

import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.agents.roster.names import (
    AN_AGENT,
    MAX_SIMULATIONS,
    PACKAGED,
    SHIPPED,
    AgentName,
    resolve,
)
from hackmatrix.cli.arguments import move_values_first, parse
from hackmatrix.cli.buckets import local, local_newest
from hackmatrix.cli.play import PageOptions, keep_products_single, show_page
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import flag, option
from hackmatrix.runs.bucket import is_address

_AFTER_PAINT = 1.0  # seconds from a tab's connection until JAX may take the processor


@dataclass(frozen=True)
class WatchOptions(PageOptions):
    """The command's options."""

    agent: str | None = option(
        None,
        f"{AN_AGENT}. Or a saved game (.json). Default: `shipped`",
        positional=True,
    )
    run: Path | None = option(None, "folder of a run, all of whose checkpoints can be chosen")
    latest: bool = option(False, "watch the newest run in --checkpoint-dir")
    checkpoint_dir: Path = option(Path("checkpoints"), "folder of runs")
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)
    hidden_dim: int | None = option(
        None, "width of the agent's network; found from its arrays", at_least=1
    )
    num_layers: int | None = option(
        None, "hidden layers of the agent's network; found from its arrays", at_least=1
    )
    seed: str = option(
        "e0.0", "the first game, such as 7; e0.3 is game 3 that `evaluate --seed 0` plays"
    )
    episodes: int = option(1, "games to play one after the other", at_least=1)
    search: int | None = option(
        None,
        "offer NAME@N too, tree search with N simulations; the agent alone plays first",
        at_least=1,
        at_most=MAX_SIMULATIONS,
    )
    greedy: bool = option(False, "always take the most probable action instead of sampling one")

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum([self.agent is not None, self.run is not None, self.latest]) > 1:
            raise UserError("give only one of an agent, --run and --latest")


def main(argv: list[str]) -> int:
    """Serves the page until Ctrl+C."""
    options = parse(
        WatchOptions,
        move_values_first(argv, ["--agent"]),
        command="hackmatrix watch",
        purpose="Shows an agent at play in your browser; you can step, look back and take over.",
        example="  hackmatrix watch checkpoints/my-run/final_params.npz\n"
        "      plays, with probabilities and the odds of winning at every position",
    )
    keep_products_single()
    from hackmatrix.agents.roster.judge import judge
    from hackmatrix.agents.roster.search_player import Searching
    from hackmatrix.agents.roster.session_agents import cast, newest_run
    from hackmatrix.game.engine.replay import GameId, load_replay
    from hackmatrix.ui.session.session import Session

    agent, replay = options.agent or str(options.run or SHIPPED), None
    if agent.endswith(".json"):  # the agent of the package judges it
        agent, replay = SHIPPED, load_replay(Path(local(agent)))
    if options.latest:
        folder = options.checkpoint_dir
        agent = str(local_newest(folder) if is_address(folder) else newest_run((folder,)))
    named = resolve(agent, options.search, local)
    is_file = named.params is not None and named.name not in PACKAGED and not is_address(agent)
    if is_file and Path(named.name) != named.params:  # by another trainer's name
        print(f"{named.name}: {named.params}", file=sys.stderr, flush=True)
    check_network(named, options.hidden_dim, options.num_layers)
    agents = cast(named, search_first=options.search is None)
    first = next(iter(agents.values()))
    if isinstance(first, Searching):
        print(f"{named}: its search is compiled ...", file=sys.stderr, flush=True)
    first()  # a file that is none is told before a page opens
    game = replay.game if replay else GameId.read(options.seed)

    searching = [make for make in agents.values() if isinstance(make, Searching)]

    def session() -> Session:
        for make in searching:
            threading.Timer(_AFTER_PAINT, make.prepare).start()
        return Session(
            game,
            agents,
            greedy=options.greedy,
            episodes=options.episodes,
            start=replay,
            judge=judge,
        )

    def at_end() -> None:
        for make in searching:
            make.stop()

    return show_page(options, session, at_end)


def check_network(agent: AgentName, hidden_dim: int | None, num_layers: int | None) -> None:
    """Raises `UserError` if an agent's network has another width or depth than the user says."""
    wanted = {"hidden_dim": hidden_dim, "num_layers": num_layers}
    wanted = {name: number for name, number in wanted.items() if number is not None}
    if wanted and agent.params is None:
        raise UserError(f"{flag(min(wanted))}: {agent} has no network")
    if agent.params is None or not wanted:
        return
    from hackmatrix.agents.networks.policy import load_policy

    policy = load_policy(agent.params)
    for name, size in wanted.items():
        if (actual := getattr(policy.config, name)) != size:
            raise UserError(f"{policy.path}: by its arrays, {flag(name)} is {actual}: leave it out")
