"""The options of `hackmatrix tune`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option
from hackmatrix.environments.interface.metric import Severity
from hackmatrix.learning.reporting.alarms import NOT_FINITE, alarms_of
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS

FOLDER = Path("tuning")
QUICK = "quick"  # the settings of a search without a file: a trial takes minutes

_CRITICAL = [r.name for r in alarms_of(LEARNER_METRICS) if r.severity is Severity.CRITICAL]


def without_password(url: str) -> str:
    """The URL of a database as it may be shown: without its password, also if it is an option."""
    scheme, slashes, rest = url.partition("://") if "://" in url else ("", "", url)
    user, colon, secret = rest.partition(":")
    if colon and "@" in secret:
        rest = f"{user}:***@{secret.rpartition('@')[2]}"
    return re.sub(r"(?i)(pass\w*|pwd)=[^&]*", r"\1=***", f"{scheme}{slashes}{rest}")


@dataclass(frozen=True)
class TuneOptions:
    """The options of a search, and where it is kept."""

    config: Path | None = option(
        None,
        "YAML file of settings, some of which the search changes; by default `quick`, for "
        "HackMatrix",
    )
    env: str | None = option(
        None, "environment of the settings, if it is your own (module:function)"
    )
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)
    search_space: Path | None = option(
        None, "YAML file of the settings to search, see docs/tuning.md; by default PPO's"
    )
    num_trials: int = option(20, "trials of this search, including those before a kill", at_least=1)
    sampler: Literal["tpe", "random", "grid"] = option("tpe", "method of choosing settings")
    objective: Literal["score", "pareto"] = option(
        "score",
        "the best score after equal steps, or the best score for each training time",
    )
    metric: str | None = option(
        None,
        "the score, a name in metrics.jsonl; by default eval/mean_return if the file has "
        "eval_interval, else the return in training",
    )
    constraint: tuple[str, ...] = option(
        (),
        f"critical alarms, besides {NOT_FINITE.name}, that disqualify a trial, see docs/metrics.md",
        choices=_CRITICAL,
    )
    pruning: bool = option(True, "end trials early that score below the median of the others")
    num_seeds: int = option(3, "agents of each trial", at_least=1, at_most=1024)
    fresh_seeds: int = option(
        5,
        "seeds, unused by any trial, with which the winner and the settings of the file are "
        "retrained at the end; 0 for none",
        at_least=0,
        at_most=1024,
    )
    jobs: int = option(1, "processes that train trials at once", at_least=1, at_most=256)
    together: int = option(
        1,
        "trials that each of these processes trains at once, all in one program",
        at_least=1,
        at_most=256,
    )
    seed: int | None = option(None, "seed of the sampler; random by default", at_least=0)
    storage: str | None = option(
        None, "URL of a database for workers on several machines, instead of a file in the folder"
    )
    output_dir: Path | None = option(
        None, f"folder of the search; default {FOLDER}/ and the name of the file of settings"
    )
    json: bool = option(False, "print one JSON object at the end")

    def __post_init__(self) -> None:
        check(self)
        if self.storage is not None and "://" not in self.storage:
            raise UserError(
                f"--storage {without_password(self.storage)}: must be a URL, such as "
                "postgresql+psycopg://user@host/name"
            )

    @property
    def constraints(self) -> tuple[str, ...]:
        """The alarms with which a trial can't win."""
        return tuple(name for name in _CRITICAL if name in (NOT_FINITE.name, *self.constraint))

    @property
    def folder(self) -> Path:
        """The folder of the search."""
        name = "search" if self.config is None else self.config.stem
        return self.output_dir or FOLDER / name
