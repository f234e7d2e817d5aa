"""Mutation score: how many small changes of the Python engine, or of the learner, tests notice.

A mutant is a copy of the package in which one place of one file is different: a comparison, a
condition, a number, an operator, or a statement that is gone. The quick rule tests of the Python
engine run on each, or those of `make test` and `make thorough` in the test file of the changed
file's name; one that all of them pass has survived.
"""

import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.command import run_command
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option
from hackmatrix.research.bench.options import Options

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "hackmatrix"
GAME = PACKAGE / "game"

# Not among them: saved games and positions as text, observations and their layouts.
ENGINE = (
    *("actions", "combat", "dice", "enemy_turn", "game", "movement", "programs"),
    *("reward", "siphoning", "spawning", "stage", "state", "undo"),
)
TABLES = ("actions", "board", "chance", "enemies", "programs", "rewards", "stages")
FILES = (
    *(GAME / "engine" / f"{name}.py" for name in ENGINE),
    *(GAME / "rules" / f"{name}.py" for name in TABLES),
)
TESTS = (
    *(f"tests/game/rules/test_{name}.py" for name in ("rules", "chance")),
    "tests/game/rules/test_tables.py",
    *(f"tests/game/engine/test_{name}.py" for name in ("dice", "events")),
    *("-k", "python or not jax and not native"),
    "--confcutdir=tests/game/rules",  # what the suite prepares for JAX takes longer than they do
)


def own_test(file: Path) -> Path:
    """The test file of a file's name."""
    return ROOT / "tests" / file.relative_to(PACKAGE).with_name(f"test_{file.name}")


# The files of the learner and of runs on disk that have tests of their own.
LEARNER = tuple(
    file
    for wing in ("learning", "runs")
    for file in sorted((PACKAGE / wing).rglob("*.py"))
    if own_test(file).exists()
)
CHANGED = {"rules": FILES, "learner": LEARNER}

# Seconds of the processor, until tests that hang are ended: they have failed. By a shell, as
# `preexec_fn` would fork, which is not safe beside JAX.
SECONDS = {"rules": 90, "learner": 600}
LIMITED = ("sh", "-c", 'ulimit -t "$0" && exec "$@"')

OTHER: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any"}
UNCHANGED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class MutationOptions(Options):
    """The options of the command."""

    only: str = option("rules", "what is changed", choices=CHANGED)
    count: int = option(100, "mutants that are drawn; 0: all there are", at_least=0)
    seed: int = option(0, "what the draw depends on", at_least=0)


class Mutant(NamedTuple):
    """A changed file."""

    file: Path
    line: int
    before: str
    after: str
    source: str  # the whole file

    def text(self) -> str:
        """Where and what."""
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.before}  ->  {self.after}"


class Mutation(NamedTuple):
    """The mutants of a run and their fate."""

    possible: int
    tried: list[Mutant]
    survived: list[Mutant]

    def as_dict(self) -> dict[str, Any]:
        """The figures, for `--json`."""
        return {
            "possible": self.possible,
            "tried": len(self.tried),
            "survived": [mutant.text() for mutant in self.survived],
        }

    def text(self) -> str:
        """The figures as text, file by file, and the mutants that survived."""
        tried, survived = (Counter(m.file for m in each) for each in (self.tried, self.survived))
        rows = [
            f"{file.relative_to(PACKAGE)!s:<36}{tried[file] - survived[file]:>7}{tried[file]:>7}"
            for file in tried
        ]
        killed, all_tried = len(self.tried) - len(self.survived), len(self.tried)
        return "\n".join(
            [
                f"{'':<36}{'killed':>7}{'of':>7}",
                *rows,
                f"{'all':<36}{killed:>7}{all_tried:>7}  {killed / all_tried:.0%}"
                f"  (drawn of {self.possible:,})",
                *(f"survived: {mutant.text()}" for mutant in self.survived),
            ]
        )


def mutants(file: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    tree = ast.parse(file.read_text())
    for place in _places(tree):
        for changed in _changes(place.node):
            mutated = _with(tree, place, changed)
            yield Mutant(
                file,
                getattr(place.node, "lineno", place.line),
                ast.unparse(place.node) or place.field,
                ast.unparse(changed),
                ast.unparse(ast.fix_missing_locations(mutated)),
            )


class _Place(NamedTuple):
    """A node of a tree, and the way to it."""

    node: ast.AST
    way: tuple[tuple[str, int | None], ...]
    line: int
    field: str


def _places(
    node: ast.AST, way: tuple[tuple[str, int | None], ...] = (), line: int = 0
) -> Iterator[_Place]:
    """The nodes that play reads: no types, decorators, messages and docstrings."""
    line = getattr(node, "lineno", line)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "ops", "op"):
            continue
        for number, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or isinstance(child, UNCHANGED):
                continue
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue  # a docstring
            here = (*way, (name, number if isinstance(value, list) else None))
            yield _Place(child, here, getattr(child, "lineno", line), name)
            yield from _places(child, here, line)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What takes the place of a node, one at a time."""
    changed: Any = copy.deepcopy(node)
    match changed:
        case ast.Compare(ops=[op]) if type(op) in OTHER:
            changed.ops = [OTHER[type(op)]()]
            yield changed
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OTHER:
            changed.op = OTHER[type(op)]()
            yield changed
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Name(id=name) if name in OTHER_NAME:
            yield ast.Name(OTHER_NAME[name])
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            changed = copy.deepcopy(node)
            changed.test = ast.UnaryOp(ast.Not(), test)
            yield changed
        case ast.comprehension(ifs=[_, *others]):
            changed = copy.deepcopy(node)
            changed.ifs = others
            yield changed
        case (
            ast.Expr()
            | ast.AugAssign()
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
            | ast.Return(value=None)
            | ast.Continue()
            | ast.Break()
        ):
            yield ast.Pass()


def _with(tree: ast.Module, place: _Place, changed: ast.AST) -> ast.Module:
    """A copy of a tree with another node at a place."""
    mutated = copy.deepcopy(tree)
    parent: Any = mutated
    for name, number in place.way[:-1]:
        parent = getattr(parent, name) if number is None else getattr(parent, name)[number]
    name, number = place.way[-1]
    if number is None:
        setattr(parent, name, changed)
    else:
        getattr(parent, name)[number] = changed
    return mutated


def pytest_arguments(files: Iterable[Path]) -> tuple[str, ...]:
    """The arguments by which pytest runs the tests of files."""
    if not set(files) <= set(LEARNER):
        return TESTS
    return (*(str(own_test(file).relative_to(ROOT)) for file in files), "-m", "not slow")


def survives(mutant: Mutant | None, files: Sequence[Path]) -> bool:
    """Whether the tests of files pass on a mutant; None is the package as it is."""
    seconds = SECONDS["learner" if set(files) <= set(LEARNER) else "rules"] * len(files)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "hackmatrix"
        shutil.copytree(PACKAGE, package)  # with what is compiled of other files
        if mutant:
            (Path(folder) / mutant.file.relative_to(ROOT)).write_text(mutant.source)
        pytest = ("-m", "pytest", "-x", "-q", "-p", "pytest_timeout", "-p", "no:cacheprovider")
        done = subprocess.run(
            # -P: the package of the copy, not that of the folder in which the tests are.
            [*LIMITED, str(seconds), sys.executable, "-P", *pytest, *pytest_arguments(files)],
            cwd=ROOT,
            # Plugins that are not needed take seconds to import.
            env=os.environ | {"PYTHONPATH": folder, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return done.returncode == 0


def draw(options: MutationOptions) -> tuple[int, list[Mutant]]:
    """The number of all mutants, and those that the seed draws."""
    possible = [mutant for file in CHANGED[options.only] for mutant in mutants(file)]
    drawn = random.Random(options.seed).sample(
        range(len(possible)), min(options.count, len(possible)) or len(possible)
    )
    return len(possible), [possible[number] for number in sorted(drawn)]


def measure(options: MutationOptions) -> Mutation:
    """Draws mutants and runs the tests on them, one on each core."""
    possible, tried = draw(options)
    files = list(dict.fromkeys(mutant.file for mutant in tried))
    if not survives(None, files):
        raise UserError(
            f"the tests fail on the package as it is: pytest {' '.join(pytest_arguments(files))}"
        )
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        fates = list(pool.map(lambda mutant: survives(mutant, [mutant.file]), tried))
    survived = [mutant for mutant, survives in zip(tried, fates, strict=True) if survives]
    return Mutation(possible, tried, survived)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "mutation",
        measure,
        MutationOptions,
        argv,
        purpose="Changes the rules of the Python engine, or the learner and runs on disk, one "
        "place at a time, and counts the changes that their tests notice.",
        example="--count 20 --seed 1\n      twenty mutants, a few minutes",
    )


if __name__ == "__main__":
    sys.exit(main())
