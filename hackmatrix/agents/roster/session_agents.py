"""Which agents a session has: the one asked for, other checkpoints of its run, built-in ones."""

from pathlib import Path

from hackmatrix.agents.roster.built_in import built_in_agents
from hackmatrix.agents.roster.names import NAMES, RAW, SHIPPED, AgentName
from hackmatrix.agents.roster.position_policies import Make, from_file
from hackmatrix.agents.roster.search_player import Searching
from hackmatrix.agents.shipped import PARAMS, RAW_PARAMS
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID

MOST_CHECKPOINTS = 12  # of a run, the newest


def cast(agent: AgentName, *, search_first: bool = True) -> dict[str, Make]:
    """The agents by name, the first of them at the controls.

    Args:
        agent: the one that is asked for.
        search_first: whether one that searches is at the controls, and not its network alone.

    Raises:
        UserError: there is no such agent, or it can't be searched with.
    """
    agents: dict[str, Make] = {RAW: from_file(RAW_PARAMS, RAW), **built_in_agents()}
    if agent.params is None:
        first: dict[str, Make] = {agent.name: agents.pop(agent.name)}
        return {**first, SHIPPED: from_file(PARAMS, SHIPPED), **agents}
    files = _of_run(agent.params) if agent.params.is_dir() else [agent.params]
    networks: dict[str, Make] = {}
    for file in files:
        name = agent.label(file)
        networks[name] = from_file(file, name)
        agents.pop(name, None)  # a file may be called as they are
    if agent.simulations is None:
        return networks | agents
    name = f"{agent.label(files[0])}@{agent.simulations}"
    search: dict[str, Make] = {name: Searching(name, files[0], agent.simulations)}
    return (search | networks if search_first else networks | search) | agents


def newest_run(folders: tuple[Path, ...]) -> Path:
    """The run of HackMatrix, of those in some folders, whose params were written last.

    Raises:
        UserError: no run has params.
    """
    from hackmatrix.runs.checkpoints import plays_hackmatrix
    from hackmatrix.runs.params import agent_folders, facts_of_params, newest_params

    runs = []
    for run in (run for folder in folders if folder.is_dir() for run in folder.iterdir()):
        for place in agent_folders(run) or [run]:
            params = newest_params(place)
            if params is not None and plays_hackmatrix(facts_of_params(place, params.stem)):
                runs.append((params.stat().st_mtime, place))
    if not runs:
        places = " or ".join(map(str, folders))
        raise UserError(
            f"no run with params in {places} that plays {ENVIRONMENT_ID}: name a file, a run's "
            f"folder, or a built-in agent ({', '.join(NAMES)})"
        )
    return max(runs)[1]


def _of_run(run: Path) -> list[Path]:
    from hackmatrix.runs.params import FINAL, agent_folders, newest_params, numbered_params

    if folders := agent_folders(run):
        run = folders[0]
    newest = newest_params(run)
    if newest is None:
        raise UserError(f"{run}: holds no params of an agent yet")
    numbered = numbered_params(run)
    latest = [numbered[update] for update in sorted(numbered, reverse=True)[:MOST_CHECKPOINTS]]
    named = [run / f"{name}.npz" for name in (FINAL, "best_params")]
    return list(dict.fromkeys([newest, *(path for path in named if path.exists()), *latest]))
