"""The facts of a checkpoint and of exported params: all that is known of them but the arrays."""

import dataclasses
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

from hackmatrix.errors import UserError

SCORE = "mean_return"  # of an evaluation: the checkpoint with the highest one is the best
OF_AGENTS = "agents"  # of an evaluation of many agents: the evaluation of each, beside the means

Evaluation = dict[str, Any]

_IN_WORDS = {int: "a whole number", str: "a text", dict: "an object"}
_KINDS = {
    "update": int,
    "timesteps": int,
    "last_logged": int,
    "environment": str,
    "version": str,
    "config": dict,
}


@dataclass(frozen=True)
class Facts:
    """Facts of a checkpoint. Its JSON has them under these names, and so has that of its params."""

    update: int  # updates made since the run's start
    timesteps: int  # transitions made since the run's start, of each agent
    last_logged: int  # the update of the last row of metrics: later ones are in the sums
    environment: str  # its id
    version: str  # of hackmatrix
    config: dict[str, Any]  # every setting of the run
    evaluation: Evaluation | None = None  # of this very update, if it was the best so far

    @property
    def score(self) -> float | None:
        """The score of the evaluation; None without one."""
        return None if self.evaluation is None else float(self.evaluation[SCORE])

    @property
    def num_agents(self) -> int:
        """How many agents the checkpoint holds."""
        return int(self.config.get("num_seeds", 1))  # older configurations know of one only

    def of_agent(self, k: int) -> Self:
        """The facts of agent `k` alone, as a run of its seed would have them."""
        if self.num_agents == 1:
            return self
        config = self.config | {"seed": self.config["seed"] + k, "num_seeds": 1}
        own = None if self.evaluation is None else self.evaluation[OF_AGENTS][k]
        return dataclasses.replace(self, config=config, evaluation=own)

    def as_json(self) -> dict[str, Any]:
        """The facts as JSON holds them."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, facts: dict[str, Any], where: str) -> Self:
        """The facts that a JSON object holds; it may hold more.

        Args:
            facts: the object.
            where: what errors name: the file.

        Raises:
            UserError: a fact is missing or of the wrong kind; says which.
        """
        for name in (*_KINDS, "evaluation"):
            if name not in facts:
                raise UserError(f"{where}: holds no {name}; another version of hackmatrix wrote it")
        for name, kind in _KINDS.items():
            if not isinstance(facts[name], kind):
                raise UserError(f"{where}: {name} must be {_IN_WORDS[kind]}, got {facts[name]!r}")
        evaluation = facts["evaluation"]
        if evaluation is not None and not _is_evaluation(evaluation):
            raise UserError(f"{where}: evaluation must be null or have a number as {SCORE}")
        return cls(**{field.name: facts[field.name] for field in dataclasses.fields(cls)})


def _is_evaluation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get(SCORE), Real)
