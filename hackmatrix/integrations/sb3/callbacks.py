"""Callbacks of Stable-Baselines3's training: statistics, checkpoints, evaluation, display."""

import io
import signal
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback
from stable_baselines3.common.callbacks import BaseCallback

from hackmatrix.core.files import write_atomically
from hackmatrix.core.streams import discard_output
from hackmatrix.integrations.process.answers import REWARD_NAMES
from hackmatrix.learning.run.stop import StopRequest
from hackmatrix.runs.folder import RunFolder
from hackmatrix.runs.trackers import Trackers

# --- The history of a training: each finished episode, a row in SQLite ----------------------------


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


# --- Callbacks of Stable-Baselines3's training: statistics, checkpoints, evaluation, display ------


MODEL = "maskable_ppo_hack"
_SECONDS_A_LINE = 10.0

Say = Callable[[str], None]


class MaskViolated(RuntimeError):
    """The policy took an action that the mask forbids."""


class Episodes(BaseCallback):
    """Counts episodes, truncated ones too: to the history, the metrics file and the trackers.

    A row of metrics is the means of the episodes that ended in an update.
    """

    def __init__(self, logs: RunFolder, history: History, trackers: Trackers) -> None:
        """Continues the run's count of episodes and updates.

        Args:
            logs: the run's folder, which gets the rows.
            history: gets each episode.
            trackers: get the rows.
        """
        super().__init__()
        self._run, self._logs = logs.path.name, logs
        self._history, self._trackers = history, trackers
        self._count = history.count(self._run)
        self._ended: list[Episode] = []
        self._began = (time.monotonic(), 0)

    def _on_training_start(self) -> None:
        self._began = time.monotonic(), self.num_timesteps

    def _on_step(self) -> bool:
        self._check_masks()
        for info in self.locals["infos"]:
            if "episode_stats" not in info or "episode" not in info:
                continue
            self._count += 1
            self._ended.append(
                Episode(
                    self._count,
                    self.num_timesteps,
                    float(info["episode_stats"].get("game_return", info["episode"]["r"])),
                    info["episode_stats"],
                    bool(info.get("TimeLimit.truncated", False)),
                )
            )
        return True

    def close(self) -> None:
        """Keeps the episodes that ended since the last update."""
        self._history.add(self._run, self._ended)

    def _check_masks(self) -> None:
        actions, masks = self.locals["actions"], self.locals["action_masks"]
        # Where nothing is valid, any action ends the game.
        allowed = masks[np.arange(len(actions)), actions] | ~masks.any(1)
        if not allowed.all():
            game = int(np.flatnonzero(~allowed)[0])
            raise MaskViolated(
                f"game {game}: action {int(actions[game])} is not among the valid "
                f"{np.flatnonzero(masks[game]).tolist()}"
            )

    def _on_rollout_end(self) -> None:
        ended, self._ended = self._ended, []
        self._history.add(self._run, ended)
        since, steps = self._began
        speed = (self.num_timesteps - steps) / max(time.monotonic() - since, 1e-9)
        self._began = time.monotonic(), self.num_timesteps
        batch = self.locals["n_rollout_steps"] * self.training_env.num_envs
        row: dict[str, Any] = {
            "update": self.num_timesteps // batch,
            "timesteps": self.num_timesteps,
            "train/steps_per_second": speed,
            "train/num_episodes": float(len(ended)),
            "episode/count": float(self._count),
        }
        if ended:
            numbers = [each.figures() for each in ended]
            row |= {
                f"episode/{name}": float(np.mean([each[name] for each in numbers]))
                for name in numbers[0]
            }
            row["train/mean_episode_return"] = float(np.mean([e.total_reward for e in ended]))
            row["train/mean_episode_length"] = row["episode/steps"]
            row["stats/mean_stage"] = row["episode/highest_stage"]
            row["stats/truncated"] = float(np.mean([each.truncated for each in ended]))
        row |= _learning(self.logger.name_to_value)
        self._logs.add_metrics(row)
        self._trackers.log(self.num_timesteps, self.num_timesteps, row)


def _learning(values: dict[str, Any]) -> dict[str, float]:
    """The learner's own figures of the update before, and those of the last evaluation."""
    return {
        name: float(value)
        for name, value in values.items()
        if name.startswith(("train/", "eval/")) and isinstance(value, int | float | np.number)
    }


def save(model: Any, path: Path) -> None:
    """Saves a model; a kill at any moment leaves what was there, or the new one.

    Raises:
        OSError: it can't be written.
    """
    content = io.BytesIO()
    model.save(content)
    write_atomically(path, content.getvalue())


class Checkpoints(BaseCallback):
    """Saves the model every so many steps, however many games step at once."""

    def __init__(self, every: int, folder: Path) -> None:
        super().__init__()
        self._every, self._folder = every, folder
        self._next = 0

    def close(self) -> None:
        """Nothing is open."""

    def _on_training_start(self) -> None:
        self._next = self.num_timesteps + self._every - self.num_timesteps % self._every

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._next:
            save(self.model, self._folder / f"{MODEL}_{self.num_timesteps}_steps.zip")
            self._next = self.num_timesteps + self._every - self.num_timesteps % self._every
        return True


class Evaluation(MaskableEvalCallback):
    """Five masked deterministic episodes every so many steps; the best model is kept."""

    def __init__(
        self,
        env: Any,
        every: int,
        num_envs: int,
        models: Path,
        logs: Path,
        stopping: "StopCallback",
    ) -> None:
        self._stopping = stopping
        super().__init__(
            env,
            n_eval_episodes=5,
            eval_freq=max(every // num_envs, 1),
            best_model_save_path=str(models),
            log_path=str(logs),
            deterministic=True,
            verbose=0,
        )

    def _init_callback(self) -> None:
        with warnings.catch_warnings():  # many games in JAX are evaluated by one in Python
            warnings.filterwarnings("ignore", "Training and eval env are not of the same type")
            super()._init_callback()

        self._take_up(Path(f"{self.log_path}.npz"))

    def _take_up(self, path: Path) -> None:
        """Goes on from the evaluations of a resumed run, whose best model stays until beaten."""
        try:
            with np.load(path) as saved:
                columns = [saved[name].tolist() for name in ("timesteps", "results", "ep_lengths")]
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # none, or cut by a kill
            return
        evaluations = list(zip(*columns, strict=False))
        self.best_mean_reward = max(
            (float(np.mean(each[1])) for each in evaluations), default=-np.inf
        )
        for steps, rewards, lengths in evaluations:
            if steps <= self.model.num_timesteps:
                self.evaluations_timesteps.append(steps)
                self.evaluations_results.append(rewards)
                self.evaluations_length.append(lengths)

    def _log_success_callback(self, *arguments: Any) -> None:  # after each step of the games
        self._stopping.check()
        super()._log_success_callback(*arguments)

    def close(self) -> None:
        """Ends the game of the evaluation."""
        self.eval_env.close()


class ProgressCallback(BaseCallback):
    """A bar on a terminal; elsewhere a line now and then."""

    def __init__(self, timesteps: int, say: Say) -> None:
        super().__init__()
        self._timesteps, self._say = timesteps, say
        self._bar: Any = None
        self._task: Any = None
        self._first = 0
        self._began = self._last_line = 0.0

    def _on_training_start(self) -> None:
        self._first, self._began = self.num_timesteps, time.monotonic()
        self._last_line = self._began
        if sys.stdout.isatty():
            from rich.progress import Progress as Bar

            self._bar = Bar(transient=True)
            self._task = self._bar.add_task("training", total=self._timesteps)
            self._bar.start()

    def _on_step(self) -> bool:
        if self._bar is not None:
            self._bar.update(self._task, completed=self.num_timesteps - self._first)
        elif time.monotonic() - self._last_line > _SECONDS_A_LINE:
            self._last_line = time.monotonic()
            self._say(self.line())
        return True

    def line(self) -> str:
        """Where the training stands; empty before it begins."""
        if not self._began:
            return ""
        done = self.num_timesteps - self._first
        speed = done / max(time.monotonic() - self._began, 1e-9)
        returns = [each["r"] for each in self.model.ep_info_buffer or []]
        mean = f", return {np.mean(returns):+.2f}" if returns else ""
        return f"{self.num_timesteps:,} steps, {speed:,.0f} a second{mean}"

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.stop()


class StopCallback(BaseCallback):
    """Ends the training at Ctrl+C, SIGTERM or SIGHUP; the last of the callbacks.

    While games are played it ends after the step, while the network learns and in an evaluation at
    once, by a `KeyboardInterrupt`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.request = StopRequest(self._on_request, self._on_hangup)
        self._is_learning = False

    @property
    def signal(self) -> signal.Signals | None:
        """The signal that asked for it."""
        return self.request.signal

    def check(self) -> None:
        """Ends the training here if a signal has asked for it."""
        if self.request.is_requested:
            raise KeyboardInterrupt

    def close(self) -> None:
        """From now on nothing is ended."""
        self._is_learning = False

    def _on_request(self) -> None:
        if self._is_learning:
            raise KeyboardInterrupt

    def _on_hangup(self) -> None:
        discard_output()
        self.request.signal = signal.SIGHUP
        self._on_request()

    def _on_rollout_start(self) -> None:
        self._is_learning = False

    def _on_rollout_end(self) -> None:
        self._is_learning = True

    def _on_step(self) -> bool:
        return not self.request.is_requested
