"""How an agent grew up: games that checkpoints of its run play, all with the same dice."""

from pathlib import Path

from hackmatrix.agents.roster.opinion import Agent, opinion
from hackmatrix.agents.roster.position_policies import load
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.game import new_game, step
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.ui.session.review import MOST_STEPS

SHOWN = 4  # checkpoints of a run


def checkpoints(run: Path) -> dict[int, Path]:
    """At most four files of params of a run by update, from the first to the last, evenly spread.

    Args:
        run: a run's folder, or that of one agent of a run with many.

    Raises:
        UserError: it has fewer than two, or several agents.
    """
    from hackmatrix.runs.params import FINAL, agent_folders, numbered_params, update_of_params

    if folders := agent_folders(run):
        raise UserError(f"{run}: has {len(folders)} agents: choose one, such as {folders[0]}")
    files = numbered_params(run)
    for name in ("best_params", FINAL):
        if (update := update_of_params(run, name)) is not None:
            files.setdefault(update, run / f"{name}.npz")
    if len(files) < 2:
        raise UserError(f"{run}: needs two checkpoints or more with params, has {len(files)}")
    updates, last = sorted(files), min(SHOWN, len(files)) - 1
    spread = [updates[round(i * (len(updates) - 1) / last)] for i in range(last + 1)]
    return {update: files[update] for update in spread}


def play_game(params: Path, game: GameId) -> Replay:
    """A game as the agent in a file of params plays it, which samples its actions.

    Raises:
        UserError: the file is missing or damaged, or its numbers are not finite.
    """
    agent = Agent(params.stem, load(params))
    state, memory, actions = new_game(Dice(*game)), None, list[int]()
    while not state.over and len(actions) < MOST_STEPS:
        valid = set(valid_actions(state))
        mask = [action in valid for action in range(NUM_ACTIONS)]
        view = opinion(agent, observe(state), mask, memory)
        memory = view.memory
        actions.append(view.sample(game, len(actions)))
        step(state, actions[-1])
    return Replay(game, tuple(actions))
