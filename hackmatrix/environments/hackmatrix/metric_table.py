"""HackMatrix's metrics, in addition to the learner's. Imports no JAX."""

from hackmatrix.environments.interface.metric import Metric, Over, Shown
from hackmatrix.environments.interface.report import Breakdown, Column, PlayedGames
from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM
from hackmatrix.game.rules.rewards import REWARD_PARTS


def _of_games(label: str, form: str, in_summary: bool = False) -> Shown:
    return Shown("GAME", label, form, in_summary=in_summary)


def _of_actions(label: str, ranked: bool = False) -> Shown:
    return Shown("ACTIONS", label, ".1%", ranked)


def _reward_part(part: str) -> Metric:
    label = part.removesuffix("_penalty").replace("_", " ")
    shown = Shown("REWARD PER ACTION", label, "+.4f", ranked=True)
    return Metric(f"reward/{part}", Over.STEPS, f"reward part `{part}`", shown=shown)


def _program_use(program: str) -> Metric:
    return Metric(
        f"actions/program/{program}",
        Over.STEPS,
        f"fraction of actions that run {program}",
        shown=_of_actions(program, ranked=True),
    )


METRICS = (
    Metric(
        "stats/mean_stage",
        Over.EPISODES,
        "highest stage reached, 1..8",
        shown=_of_games("stage", ".2f", in_summary=True),
    ),
    Metric(
        "stats/highest_stage",
        Over.HIGHEST,
        "highest stage reached, 1..8",
        shown=_of_games("highest", ".0f"),
    ),
    Metric(
        "stats/win_rate",
        Over.EPISODES,
        "fraction of games won",
        shown=_of_games("win rate", ".1%"),
    ),
    Metric(
        "stats/mean_score",
        Over.EPISODES,
        "score at the end of a game",
        shown=_of_games("score", ",.2f"),
    ),
    Metric(
        "stats/programs_owned",
        Over.EPISODES,
        "programs owned at the end of a game",
        shown=_of_games("programs", ".2f"),
    ),
    Metric(
        "stats/siphon_first_chance_frac",
        Over.CHANCES,
        "of the spells in which siphoning was valid, the fraction that began with siphoning",
    ),
    Metric(
        "actions/move_frac",
        Over.STEPS,
        "fraction of actions that are directions",
        shown=_of_actions("move"),
    ),
    Metric(
        "actions/siphon_frac",
        Over.STEPS,
        "fraction of actions that siphon",
        shown=_of_actions("siphon"),
    ),
    Metric(
        "actions/program_frac",
        Over.STEPS,
        "fraction of actions that run a program",
        shown=_of_actions("program"),
    ),
    *map(_program_use, ACTION_NAMES[FIRST_PROGRAM:]),
    *map(_reward_part, REWARD_PARTS),
    Metric("eval/mean_stages_cleared", Over.EVALUATION, "stages completed in a game, 0..8"),
    Metric("eval/win_rate", Over.EVALUATION, "fraction of games won"),
    Metric("eval/mean_score", Over.EVALUATION, "score at the end of a game"),
)


# --- HackMatrix's part of an evaluation report: stages, wins, score, programs ---------------------


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
