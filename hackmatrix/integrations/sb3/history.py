"""The history of a training: each finished episode, a row in SQLite."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from hackmatrix.integrations.process.answers import REWARD_NAMES

FILE = "training_history.db"
PARTS = [name for part, name in REWARD_NAMES.items() if part != "step_penalty"]
KINDS = {"move": "action_moves", "siphon": "action_siphons", "program": "action_programs"}
_SUMS = [f"reward_{part}" for part in PARTS]
_COUNTS = ["programs_used", "highest_stage", "steps", *KINDS.values()]
_COLUMNS = ["run_id", "timestamp", "episode_num", "timestep", "total_reward", *_SUMS, *_COUNTS]


class Episode(NamedTuple):
    """A finished or truncated episode."""

    episode_num: int  # from 1 on, in its run
    timestep: int  # of the run, when it ended
    total_reward: float
    stats: dict[str, Any]  # as `info["episode_stats"]`
    truncated: bool

    def figures(self) -> dict[str, float]:
        """Its figures, under the names that trackers show them by."""
        counts = self.stats["action_counts"]
        return {
            **{f"reward_{part}": self.stats["reward_breakdown"].get(part, 0.0) for part in PARTS},
            **{name: self.stats[name] for name in ("programs_used", "highest_stage", "steps")},
            **{column: counts.get(kind, 0) for kind, column in KINDS.items()},
        }


class History:
    """The table `episodes` of a database that several runs share."""

    def __init__(self, folder: Path) -> None:
        """Opens the database in a folder, or makes it."""
        self._database = sqlite3.connect(folder / FILE, timeout=30)
        kinds = {"run_id": "TEXT", "timestamp": "TEXT DEFAULT CURRENT_TIMESTAMP"}
        columns = ", ".join(
            f"{name} {kinds.get(name, 'REAL' if 'reward' in name else 'INTEGER')}"
            for name in _COLUMNS
        )
        with self._database as transaction:
            transaction.execute(
                f"CREATE TABLE IF NOT EXISTS episodes (id INTEGER PRIMARY KEY, {columns})"
            )

    def close(self) -> None:
        """Closes the database."""
        self._database.close()

    def count(self, run: str) -> int:
        """The number of episodes of a run."""
        found = self._database.execute("SELECT COUNT(*) FROM episodes WHERE run_id = ?", (run,))
        return int(found.fetchone()[0])

    def cut(self, run: str, timestep: int) -> int:
        """Removes the episodes of a run that ended after a step; returns their number."""
        with self._database as transaction:
            later = transaction.execute(
                "DELETE FROM episodes WHERE run_id = ? AND timestep > ?", (run, timestep)
            )
        return later.rowcount

    def add(self, run: str, episodes: Iterable[Episode]) -> None:
        """Adds episodes of a run, all or none."""
        names = [name for name in _COLUMNS if name != "timestamp"]
        rows = [
            (run, each.episode_num, each.timestep, each.total_reward, *each.figures().values())
            for each in episodes
        ]
        places = ", ".join("?" * len(names))
        with self._database as transaction:
            transaction.executemany(
                f"INSERT INTO episodes ({', '.join(names)}) VALUES ({places})", rows
            )
