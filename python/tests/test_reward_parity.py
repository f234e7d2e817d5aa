"""The tests of `tests/test_reward_parity.py`, where other documents have them."""

import runpy
from pathlib import Path

_TESTS = runpy.run_path(str(Path(__file__).parents[2] / "tests" / "test_reward_parity.py"))
globals().update({name: test for name, test in _TESTS.items() if name.startswith("test_")})
