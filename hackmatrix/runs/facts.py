"""The facts of a checkpoint and of exported params: everything except the arrays."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID

SCORE = "mean_return"  # score of an evaluation: the checkpoint with the highest is the best
OF_AGENTS = "agents"  # in an evaluation of many agents: the list of each agent's results

Evaluation = dict[str, Any]

_MOST = 2**53  # of a number
_IN_WORDS = {int: "a whole number", str: "a text", dict: "an object"}
_KINDS: dict[str, type] = {
    "update": int,
    "timesteps": int,
    "last_logged": int,
    "environment": str,
    "version": str,
    "config": dict,
}


@dataclass(frozen=True)
class Facts:
    """Facts of a checkpoint or of exported params; the fields are the names in their JSON."""

    update: int  # updates made since the run's start
    timesteps: int  # transitions made since the run's start, of each agent
    last_logged: int  # update of the last row of metrics; later updates are in the sums
    environment: str  # its id
    version: str  # of hackmatrix
    config: dict[str, Any]  # every setting of the run
    evaluation: Evaluation | None = None  # the evaluation of this update, if it was the best so far

    @property
    def score(self) -> float | None:
        """The score of the evaluation; None without one, or if it is not finite."""
        return score_in(self.evaluation)

    @property
    def num_agents(self) -> int:
        """Number of agents that the checkpoint holds."""
        return int(self.config.get("num_seeds", 1))  # older configurations have a single agent

    def of_agent(self, k: int) -> Self:
        """The facts of agent `k` alone, as in a run with only its seed."""
        if self.num_agents == 1:
            return self
        config = self.config | {"seed": self.config.get("seed", 0) + k, "num_seeds": 1}
        own = None if self.evaluation is None else self.evaluation[OF_AGENTS][k]
        return dataclasses.replace(self, config=config, evaluation=own)

    def as_json(self) -> dict[str, Any]:
        """The facts as a JSON object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, facts: dict[str, Any], where: str) -> Self:
        """Reads the facts from a JSON object, which may have further fields.

        Args:
            facts: the object.
            where: name of the file for error messages.

        Raises:
            UserError: a fact is missing or has the wrong type; the message names it.
        """
        for name in (*_KINDS, "evaluation"):
            if name not in facts:
                raise UserError(f"{where}: holds no {name}; another version of hackmatrix wrote it")
        for name, kind in _KINDS.items():
            value = facts[name]
            if type(value) is not kind or (type(value) is int and not 0 <= value <= _MOST):
                raise UserError(f"{where}: {name} must be {_IN_WORDS[kind]}, got {value!r:.60}")
        _check_agents(facts["config"], where)
        evaluation = facts["evaluation"]
        if evaluation is not None and not _is_evaluation(evaluation):
            raise UserError(f"{where}: evaluation must be null or have a number as {SCORE}")
        result = cls(**{field.name: facts[field.name] for field in dataclasses.fields(cls)})
        if evaluation is not None and result.num_agents > 1:
            agents = evaluation.get(OF_AGENTS)
            if not isinstance(agents, list) or len(agents) != result.num_agents:
                raise UserError(f"{where}: evaluation must list {result.num_agents} {OF_AGENTS}")
            if not all(map(_is_evaluation, agents)):
                raise UserError(f"{where}: each of {OF_AGENTS} must have a number as {SCORE}")
        return result


def _check_agents(config: dict[str, Any], where: str) -> None:
    for name, least in (("num_seeds", 1), ("seed", 0)):
        value = config.get(name, least)
        if type(value) is not int or not least <= value <= _MOST:
            raise UserError(f"{where}: {name} must be {_IN_WORDS[int]}, got {value!r:.60}")


def score_in(evaluation: Any) -> float | None:
    """The score of an evaluation; None if there is none, or none that can be compared."""
    score = evaluation.get(SCORE) if isinstance(evaluation, dict) else None
    return float(score) if isinstance(score, Real) and math.isfinite(score) else None


def plays_hackmatrix(about: Mapping[str, Any]) -> bool:
    """Whether params with these facts play HackMatrix; without facts they are taken to do so."""
    return about.get("environment", ENVIRONMENT_ID) == ENVIRONMENT_ID


def _is_evaluation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get(SCORE), Real)
