"""Counts the verdicts and formats them as a table and as JSON."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hackmatrix.game.conformance.check import StepVerdict
from hackmatrix.game.conformance.declared_differences import DeclaredDifference
from hackmatrix.game.conformance.frequencies import Chance
from hackmatrix.game.rules.actions import ACTION_NAMES

MAX_FAILURES_SHOWN = 20


@dataclass
class Tally:
    """Counts of the verdicts on the steps of one action."""

    steps: int = 0
    declared: int = 0
    failed: int = 0
    by_rule: Counter[DeclaredDifference] = field(default_factory=Counter)

    @property
    def reproduced(self) -> int:
        """Number of steps that matched the recording."""
        return self.steps - self.declared - self.failed

    def add(self, verdict: StepVerdict) -> None:
        """Counts a verdict."""
        self.steps += 1
        self.failed += verdict.failure is not None
        self.declared += bool(verdict.rules)
        self.by_rule.update(verdict.rules)


@dataclass
class ConformanceReport:
    """Counts of the verdicts on all steps.

    Attributes:
        total: over all actions.
        by_action: one for each action, by its number.
        first_failures: place and text of the first failures.
        chance: random outcomes by file, in the order of the files.
    """

    total: Tally = field(default_factory=Tally)
    by_action: list[Tally] = field(default_factory=lambda: [Tally() for _ in ACTION_NAMES])
    first_failures: list[dict[str, Any]] = field(default_factory=list)
    chance: list[tuple[str, Chance]] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether there is neither a failed step nor a fault of the random outcomes."""
        return not self.total.failed and not self.chance_faults()

    def begin_file(self, file: str) -> None:
        """Starts a file: the verdicts that follow are on its games."""
        self.chance.append((file, Chance()))

    def chance_faults(self) -> list[str]:
        """Where random outcomes contradict the rules, one sentence each, by file."""
        return [f"{file}: {fault}" for file, chance in self.chance for fault in chance.faults()]

    def add(self, game: int, step: int, action: int, verdict: StepVerdict) -> None:
        """Counts a verdict; games of the file and steps of the game count from 0."""
        file, chance = self.chance[-1]
        chance.add(verdict.draws)
        self.total.add(verdict)
        self.by_action[action].add(verdict)
        if verdict.failure is not None and len(self.first_failures) < MAX_FAILURES_SHOWN:
            self.first_failures.append(
                {
                    "file": file,
                    "game": game,
                    "step": step,
                    "action": ACTION_NAMES[action],
                    "difference": verdict.failure,
                }
            )

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data."""
        return {
            **_counts(self.total),
            "by_action": {
                name: _counts(tally) | {"by_rule": _by_rule(tally)}
                for name, tally in zip(ACTION_NAMES, self.by_action, strict=True)
            },
            "by_rule": _by_rule(self.total),
            "first_failures": self.first_failures,
            "chance": {file: chance.to_json() for file, chance in self.chance},
            "chance_faults": self.chance_faults(),
        }

    def to_text(self) -> str:
        """The report as a table and a line for each of the first failures."""
        rules = sorted(self.total.by_rule)
        heads = [
            "action",
            "steps",
            "reproduced",
            "declared",
            *(f"rule {r}" for r in rules),
            "failed",
        ]
        rows = [
            _row(name, tally, rules)
            for name, tally in zip(ACTION_NAMES, self.by_action, strict=True)
            if tally.steps
        ]
        lines = [_line(row) for row in (heads, *rows, _row("total", self.total, rules))]
        lines += [
            f"{f['file']}: game {f['game']} step {f['step']} ({f['action']}): {f['difference']}"
            for f in self.first_failures
        ]
        hidden = self.total.failed - len(self.first_failures)
        lines += [f"... and {hidden:,} more"] * (hidden > 0)
        return "\n".join([*lines, *self.chance_faults()])


def _counts(tally: Tally) -> dict[str, int]:
    return {
        "steps": tally.steps,
        "reproduced": tally.reproduced,
        "declared": tally.declared,
        "failed": tally.failed,
    }


def _by_rule(tally: Tally) -> dict[str, int]:
    return {str(int(rule)): count for rule, count in sorted(tally.by_rule.items())}


def _row(name: str, tally: Tally, rules: list[DeclaredDifference]) -> list[str]:
    by_rule = [tally.by_rule[rule] for rule in rules]
    counts = [tally.steps, tally.reproduced, tally.declared, *by_rule, tally.failed]
    return [name, *(f"{count:,}" if count else "." for count in counts)]


def _line(row: list[str]) -> str:
    return f"{row[0]:<8}" + "".join(f"{text:>12}" for text in row[1:])
