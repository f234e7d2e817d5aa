"""The agents that come with the package; docs/learning.md says how they were made."""

from pathlib import Path

PARAMS = Path(__file__).parent / "final_params.npz"  # wins most
SCORE_PARAMS = Path(__file__).parent / "score_params.npz"  # wins with most points
RAW_PARAMS = Path(__file__).parent / "raw_params.npz"  # reads the board alone
WIN_CHANCE = (
    Path(__file__).parent / "win_chance.json"
)  # the fit that `agents/roster/judge.py` reads
