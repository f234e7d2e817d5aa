"""The script of the same name in `scripts/`, where the original's commands look for it."""

import runpy
from pathlib import Path

if __name__ == "__main__":
    script = Path(__file__).resolve().parents[2] / "scripts" / "train.py"
    runpy.run_path(str(script), run_name="__main__")
