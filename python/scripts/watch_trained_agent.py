"""The script of the same name in `scripts/`, where the original's commands look for it."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "watch_trained_agent.py"))
