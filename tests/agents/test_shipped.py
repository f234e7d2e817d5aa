"""The agents of the package."""

import os
from pathlib import Path

import pytest

from hackmatrix.agents import shipped
from hackmatrix.agents.roster.position_policies import from_file
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.observation import observe
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.runs.params import load_params

EACH = pytest.mark.parametrize("params", [shipped.PARAMS, shipped.SCORE_PARAMS])


@EACH
def test_it_is_small_and_says_how_it_was_made(params: Path) -> None:
    about = load_params(params).about
    assert os.path.getsize(params) < 1_000_000
    assert (about["environment"], about["config"]["observation"]) == ("HackMatrix-v1", "tactical")
    assert about["config"]["checkpoint_dir"] == "checkpoints"
    assert about["config"].get("init_from") is None


@pytest.mark.thorough
@EACH
def test_it_clears_stages_and_one_of_them_scores(params: Path) -> None:
    policy = from_file(params, "it")().policy
    stages, points = [], 0
    for episode in range(2):
        game = Game.new(EVALUATION_STREAM + 7, episode)
        for _ in range(900):
            if not (valid := game.valid_actions()):
                break
            logits, _ = policy(observe(game.state), [a in valid for a in range(28)])
            game.step(max(valid, key=lambda a, logits=logits: logits[a]))
        stages.append(game.state.stage)
        points += game.state.player.score
    assert sum(stages) / len(stages) > 5, stages
    assert (points > 10) == (params == shipped.SCORE_PARAMS), points
