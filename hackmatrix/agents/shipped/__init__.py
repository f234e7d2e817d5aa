"""The agent that comes with the package; docs/learning.md says how it was made."""

from pathlib import Path

PARAMS = Path(__file__).parent / "final_params.npz"
WIN_CHANCE = (
    Path(__file__).parent / "win_chance.json"
)  # the fit that `agents/roster/judge.py` reads
