"""HackMatrix's part of an evaluation report: stages, wins, score, programs."""

from hackmatrix.environments.interface.report import Breakdown, Column, PlayedGames
from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM


def report(games: PlayedGames) -> list[Column | Breakdown]:
    """Columns and breakdowns of games."""
    won, uses = games.info["won"], games.actions[:, FIRST_PROGRAM:].mean(axis=0)
    names = ACTION_NAMES[FIRST_PROGRAM:]
    return [
        Column(
            "stages cleared",
            "mean_stages_cleared",
            games.info["stage"] - 1 + won,
            "stages_cleared_ci",
        ),
        Column("win rate", "win_rate", won),
        Column("score", "mean_score", games.info["score"]),
        Breakdown(
            "programs a game",
            "program_use",
            dict(zip(names, map(float, uses), strict=True)),
            form=".2f",
        ),
    ]
