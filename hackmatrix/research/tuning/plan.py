"""The options of `hackmatrix tune`, and the plan of a search: its start, space and measure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import write_atomically
from hackmatrix.core.options import check, option
from hackmatrix.environments.interface.metric import Severity
from hackmatrix.environments.registry import check_code
from hackmatrix.learning.reporting.alarms import NOT_FINITE, RETURN, alarms_of
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import (
    Settings,
    default_settings,
    dump_config,
    read_config,
)
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.research.tuning.space import DEFAULT, Space, read_space, settings_of, with_budget

FOLDER = Path("tuning")
QUICK = "quick"  # the settings of a search without a file: a trial takes minutes

_CRITICAL = [r.name for r in alarms_of(LEARNER_METRICS) if r.severity is Severity.CRITICAL]
PLAN = "search.json"
_ROWS = 40  # of metrics, in a trial
_FRESH = 10_000  # added to the seed of the file for agents that no trial has had


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


class SearchPlan(NamedTuple):
    """A search, apart from how its trials are chosen."""

    folder: Path
    base: Settings  # as in the file
    space: Space
    objective: str
    metric: str
    constraints: tuple[str, ...]  # alarms with which a trial can't win
    num_seeds: int
    fresh_seeds: int
    env: str | None  # that the user names

    def config(self, params: Mapping[str, Any]) -> TrainConfig:
        """The settings of a point of the space, as the user would train with them.

        Raises:
            UserError: they do not go together, or the environment is code that the user does not
                name.
        """
        found = settings_of(params)
        base = self.base
        if found.keys() & {"batch_size", "num_minibatches"}:  # one replaces the other
            base = {n: v for n, v in base.items() if n not in ("batch_size", "num_minibatches")}
        config = resolve(found, base)[0]
        check_code(config.environment.name, self.env, "the search trains on")
        config.network.check_code("the search trains the network")
        return config

    def of_trial(self, params: Mapping[str, Any]) -> TrainConfig:
        """The settings with which a trial is trained."""
        return _quiet(self.config(params), self.config(params).run.seed, self.num_seeds)

    def of_fresh(self, params: Mapping[str, Any]) -> TrainConfig:
        """The settings with which they are trained again, with seeds that no trial has had."""
        config = self.config(params)
        return _quiet(config, config.run.seed + _FRESH, self.fresh_seeds)

    def write(self) -> None:
        """Writes what the search is about, or checks that the folder's search is about the same.

        Raises:
            UserError: it is about something else, or the folder can't be made.
        """
        text = json.dumps(self._as_dict(), indent=1, default=str) + "\n"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--output-dir {self.folder}: {error.strerror}") from None
        path = self.folder / PLAN
        if not path.exists():
            write_atomically(path, text.encode())
        elif path.read_bytes() != text.encode():
            raise UserError(
                f"{self.folder} holds a search with other settings, space, metric, constraints "
                "or seeds: choose another --output-dir"
            )

    def _as_dict(self) -> dict[str, Any]:
        space = {name: list(dimension) for name, dimension in self.space.items()}
        facts = {**self._asdict(), "space": space}
        return {n: value for n, value in facts.items() if n not in ("folder", "fresh_seeds", "env")}


def plan_of(options: TuneOptions) -> SearchPlan:
    """The plan that the options describe.

    Raises:
        UserError: a file can't be read, or its settings are not valid.
    """
    env = {} if options.env is None else {"env": options.env}
    base = default_settings(env, QUICK) if options.config is None else read_config(options.config)
    if options.env is not None and not base.get("multi_task"):
        base = {**base, "env": options.env}
    if options.architecture is not None:
        base = {**base, "architecture": options.architecture}
    config, _ = resolve({}, base)
    check_code(config.environment.name, options.env, f"{options.config}: trains on")
    config.network.check_code(f"{options.config}: its network is")
    space = DEFAULT if options.search_space is None else read_space(options.search_space)
    if options.objective == "pareto":
        space = with_budget(space, config.learning.total_timesteps)
    evaluated = "eval/mean_return" if config.report.eval_interval is not None else RETURN
    return SearchPlan(
        folder=options.folder,
        base=base,
        space=space,
        objective=options.objective,
        metric=options.metric or evaluated,
        constraints=options.constraints,
        num_seeds=options.num_seeds,
        fresh_seeds=options.fresh_seeds,
        env=options.env,
    )


def _quiet(config: TrainConfig, seed: int, num_seeds: int) -> TrainConfig:
    """The settings with these seeds, enough rows of metrics, and no trackers."""
    return config.but(
        seed=seed,
        num_seeds=num_seeds,
        log_interval=max(1, config.learning.course.num_updates // _ROWS),
        keep_checkpoints=1,
        tensorboard=False,
        wandb=False,
    )


def best_yaml(plan: SearchPlan, params: Mapping[str, Any], about: str) -> str:
    """The settings of a point as a configuration file."""
    return f"# {about}\n{dump_config(plan.config(params))}"
