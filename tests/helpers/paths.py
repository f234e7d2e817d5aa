"""Where things lie in the repository."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
HELPERS = ROOT / "tests" / "helpers"
DATA = ROOT / "tests" / "data"
DOCS = ROOT / "docs"
CONFIGS = ROOT / "hackmatrix" / "configs"
FROG = ROOT / "examples" / "frog.py"  # an environment of one's own
LINEAR = ROOT / "examples" / "linear.py"  # a network of one's own
DQN = ROOT / "examples" / "dqn.py"  # an algorithm of one's own
