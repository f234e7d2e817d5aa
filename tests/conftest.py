"""Settings of all tests: where compiled programs are kept, and how hypothesis searches."""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import NO_BROWSER
from hypothesis import settings
from quick_compilation import COMPILED_QUICKLY

# Compiling is most of the suite's time. Set before anything imports JAX, and inherited by the
# processes that tests start; every program is kept, however quick it was to compile.
LEFT_OUT = pytest.StashKey[dict[str, int]]()  # tests that a mark leaves out, by mark

CACHE = Path(__file__).parent.parent / ".cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# Tracing and lowering make millions of objects, few of them in cycles: looking for those as often
# as Python does by default took a fifth of that time.
gc.set_threshold(100_000, 50, 100)

# The first call of a jitted function compiles it, so the time of one example says nothing; and a
# suite must mean the same on every machine, so its examples are not drawn anew each time.
settings.register_profile("hackmatrix", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("hackmatrix")


def pytest_configure(config: pytest.Config) -> None:
    """Before anything imports JAX, and inherited by the processes that tests start.

    The quick suite compiles quickly. The slow suite, and tests that are chosen in another way,
    compile as a user's run does.
    """
    if "not slow" in config.option.markexpr:
        for name, value in COMPILED_QUICKLY.items():
            os.environ.setdefault(name, value)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Counts what the run leaves out; each worker of a run does so, and tells the process above."""
    slow = sum(item.get_closest_marker("slow") is not None for item in items)
    either = sum(
        any(item.get_closest_marker(mark) for mark in ("slow", "thorough")) for item in items
    )
    items[0].config.stash[LEFT_OUT] = {"thorough": either - slow, "slow": slow}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """At the end of a worker."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["left_out"] = session.config.stash.get(LEFT_OUT, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """In the process above, when a worker has ended."""
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", {})


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line on what was left out, where a mark chose the tests."""
    skipped = [report.longrepr[-1] for report in terminalreporter.stats.get("skipped", [])]
    counts = config.stash.get(LEFT_OUT, {})
    parts = [f"{counts[mark]} tests of `make {mark}`" for mark in counts if counts[mark]]
    if pages := sum(NO_BROWSER in reason for reason in skipped):
        parts.append(f"{pages} of the page, which need Chromium")
    if others := len(skipped) - pages:
        parts.append(f"{others} that need other software, named above")
    if config.option.markexpr and parts:
        terminalreporter.write_line(f"left out: {', '.join(parts)}")


@pytest.fixture(scope="module", autouse=True)
def _programs_are_dropped(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whole suites compile more in a process than XLA can map: Linux allows 65,530 maps."""
    yield
    maps = Path("/proc/self/maps")
    is_full = maps.exists() and maps.read_bytes().count(b"\n") > 30_000
    is_long = "not slow" not in request.config.option.markexpr
    if (is_long or is_full) and (jax := sys.modules.get("jax")):
        jax.clear_caches()
        gc.collect()


# Longest first, so that the workers end together; and files that compile the same programs apart,
# so that the second finds what the first has kept.
LONGEST = [
    "game/native/test_cuda.py",
    "learning/run/test_multi_process.py",
    "ui/page/test_views.py",
    "ui/page/test_export.py",
    "game/jaxgame/test_lockstep.py",
    "ui/page/test_layout.py",
    "learning/run/test_loop.py",
    "ui/page/test_keeping.py",
    "ui/page/test_monitoring.py",
    "cli/test_tune.py",
    "environments/hackmatrix/test_engines.py",
    "faults/test_schedules.py",
    "ui/page/test_animation.py",
    "ui/session/test_puzzles.py",
    "ui/page/test_ending.py",
    "agents/networks/test_own_network.py",
    "research/datasets/test_clone.py",
    "environments/hackmatrix/test_env.py",
    "environments/curriculum/test_starts.py",
    "cli/test_evaluate.py",
    "game/conformance/test_recordings.py",
    "research/comparison/test_reproduction.py",
    "environments/hackmatrix/test_training_reward.py",
    "faults/test_terminals.py",
    "runs/test_wandb.py",
    "learning/trainer/test_trainer.py",
    "learning/trainer/test_seeds.py",
    "learning/trainer/test_probes.py",
    "learning/trainer/test_recurrent.py",
    "game/rules/test_rules.py",
    "agents/networks/test_cells.py",
    "learning/settings/test_devices.py",
    "environments/test_classic.py",
    "learning/run/test_kill.py",
    "faults/test_odd_files.py",
    "faults/test_clear_words.py",
    "game/jaxgame/test_agreement.py",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order in which files are handed to the workers."""
    tests = Path(__file__).parent
    places = {tests / file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))


@pytest.fixture
def shared_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of this process that need the same compiled programs share them."""
    from sharing_trainer import SharingTrainer

    monkeypatch.setattr("hackmatrix.learning.run.loop.Trainer", SharingTrainer)
