"""Which agents a session has: the one asked for, other checkpoints of its run, built-in ones."""

from pathlib import Path

from hackmatrix.agents import shipped
from hackmatrix.agents.roster.built_in import BUILT_IN, built_in
from hackmatrix.agents.roster.position_policies import Make, from_file
from hackmatrix.agents.roster.search_player import Searching
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID

MOST_CHECKPOINTS = 12  # of a run, the newest


def cast(
    agent: str | None,
    run: Path | None,
    runs: tuple[Path, ...] = (),
    *,
    simulations: int | None = None,
) -> dict[str, Make]:
    """The agents by name, the first of them at the controls.

    Args:
        agent: a built-in agent's name, or a file of params or a run's folder.
        run: a run's folder, instead of `agent`.
        runs: folders of runs: if neither is given, the newest run in them; without folders, the
            agent of the package.
        simulations: of a further agent, which searches with the first one's network.

    Raises:
        UserError: there is no such agent, or it has no network to search with.
    """
    others: dict[str, Make] = {name: built_in(name) for name in BUILT_IN}
    if agent in BUILT_IN:
        if simulations is not None:
            raise UserError(f"--search needs an agent with a network, not {agent}")
        return {agent: others.pop(agent), **others}
    files = _files(agent, run, runs)
    cast: dict[str, Make] = {name: from_file(path, name) for name, path in files.items()}
    if simulations is not None:
        searching = Searching(next(iter(files.values())), simulations)
        cast[searching.name] = searching
    return cast | others


def _files(agent: str | None, run: Path | None, runs: tuple[Path, ...]) -> dict[str, Path]:
    """Files of params by the agents' names, the one asked for first."""
    if agent is None and run is None and not runs:
        return {"shipped": shipped.PARAMS}
    path = run or (Path(agent) if agent else newest_run(runs))
    if path.is_dir():
        return {file.stem: file for file in _of_run(path)}
    if not path.exists():
        raise UserError(f"{path}: no such file; built-in agents are {', '.join(BUILT_IN)}")
    return {path.stem: path}


def newest_run(folders: tuple[Path, ...]) -> Path:
    """The run of HackMatrix, of those in some folders, whose params were written last.

    Raises:
        UserError: no run has params.
    """
    from hackmatrix.runs.facts import plays_hackmatrix
    from hackmatrix.runs.params import agent_folders, facts_of_params, newest_params

    found = []
    for run in (run for folder in folders if folder.is_dir() for run in folder.iterdir()):
        for place in agent_folders(run) or [run]:
            params = newest_params(place)
            if params is not None and plays_hackmatrix(facts_of_params(place, params.stem)):
                found.append((params.stat().st_mtime, place))
    if not found:
        places = " or ".join(map(str, folders))
        raise UserError(
            f"no run with params in {places} that plays {ENVIRONMENT_ID}: name a file, a run's "
            f"folder, or a built-in agent ({', '.join(BUILT_IN)})"
        )
    return max(found)[1]


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
