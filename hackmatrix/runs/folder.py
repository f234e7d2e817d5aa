"""The folder of a run: config.yaml, metrics.jsonl, params."""

import json
import math
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from hackmatrix.errors import UserError
from hackmatrix.runs.names import next_name
from hackmatrix.runs.params import save_params


class RunFolder:
    """A new folder `{parent}/{name}`, made by `create`, and what is written to it."""

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self._config = {k: str(v) if isinstance(v, Path) else v for k, v in config.items()}

    @classmethod
    def create(
        cls, parent: Path, name: str | None, suffix: str | None, config: Mapping[str, Any]
    ) -> "RunFolder":
        """Makes the folder and its config.yaml.

        Args:
            parent: folder of runs, made if missing.
            name: of the run; None: the next free one of today.
            suffix: added to the name after a dash.
            config: saved as config.yaml, and with exported params.

        Raises:
            UserError: there is one of this name already, or it can't be made.
        """
        run = cls(_new_folder(parent, name, f"-{suffix}" if suffix else ""), config)
        text = yaml.safe_dump(run._config, sort_keys=False)
        (run.path / "config.yaml").write_text(text, encoding="utf-8")
        return run

    def add_metrics(self, row: Mapping[str, float | None]) -> None:
        """Appends a line to metrics.jsonl, without what is None; what is not finite is null."""
        finite = {k: v if math.isfinite(v) else None for k, v in row.items() if v is not None}
        with (self.path / "metrics.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(finite) + "\n")

    def save_params(self, name: str, params: Mapping[str, Any], about: Mapping[str, Any]) -> Path:
        """Writes `{name}.npz` and `{name}.json`; `about` and the config go into the latter."""
        path = self.path / f"{name}.npz"
        save_params(path, params, {**about, "config": self._config})
        return path


def _new_folder(parent: Path, name: str | None, suffix: str) -> Path:
    try:
        parent.mkdir(parents=True, exist_ok=True)
        while True:
            chosen = name or next_name((p.name for p in parent.iterdir()), date.today())
            path = parent / (chosen + suffix)
            try:
                path.mkdir()
                return path
            except FileExistsError:
                if name:
                    raise UserError(f"the run {path} exists: choose another --run-name") from None
                # Another run took the number between the two calls: take the next.
    except OSError as error:
        raise UserError(f"--checkpoint-dir {parent}: {error.strerror}") from error
