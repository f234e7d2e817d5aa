"""The agent of the package."""

import os

from hackmatrix.agents import shipped
from hackmatrix.agents.roster.position_policies import from_file
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.runs.params import load_params


def test_it_is_small_and_says_how_it_was_made() -> None:
    about = load_params(shipped.PARAMS).about
    assert os.path.getsize(shipped.PARAMS) < 5_000_000
    assert (about["environment"], about["config"]["observation"]) == ("HackMatrix-v1", "tactical")
    assert about["config"]["checkpoint_dir"] == "checkpoints"


def test_it_wins_games() -> None:
    policy = from_file(shipped.PARAMS, "shipped")().policy
    stages = []
    for episode in range(4):
        game = Game.new(EVALUATION_STREAM + 7, episode)
        for _ in range(600):
            if not (valid := game.valid_actions()):
                break
            logits, _ = policy(observe(game.state), [a in valid for a in range(28)])
            game.step(max(valid, key=lambda a, logits=logits: logits[a]))
        stages.append(game.state.stage)
    assert sum(stages) / len(stages) > 5, stages
