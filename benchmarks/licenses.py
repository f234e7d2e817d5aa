"""Licenses of all packages that the package and its extras need, as they state them themselves."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.command import run_command
from hackmatrix.research.bench.options import Options

ONLY_HERE = ("dev", "bench")  # extras that nobody who uses the package installs
# Ways of saying the same.
SAME = (
    (r"apache( software)?( license)?,?( version)?[ -]*2(\.0)?.*", "Apache-2.0"),
    (r"(the )?mit( license)?( \(mit\))?", "MIT"),
    (r"isc license.*", "ISC"),
    (r"(python software foundation license|psf.*)", "PSF-2.0"),
    (r"(3-clause bsd|bsd-3-clause|new bsd|bsd 3).*", "BSD-3-Clause"),
    (r"(2-clause bsd|bsd-2-clause|simplified bsd).*", "BSD-2-Clause"),
    (r"mozilla public license 2\.0.*", "MPL-2.0"),
)


@dataclass(frozen=True)
class LicensesOptions(Options):
    """The options of the command."""


class Licenses(NamedTuple):
    """The license of each package by name."""

    needed: dict[str, str]  # by the package without extras, and what that needs
    of_extras: dict[str, str]  # by extras alone

    def as_dict(self) -> dict[str, Any]:
        """The table, for `--json`."""
        return self._asdict()

    def text(self) -> str:
        """The table as Markdown, a row for each license."""
        kinds = sorted({*self.needed.values(), *self.of_extras.values()}, key=str.lower)
        rows = (
            f"| {kind} | {_of(self.needed, kind)} | {_of(self.of_extras, kind)} |" for kind in kinds
        )
        return "\n".join(
            ["| license | the package needs | extras need too |", "|---|---|---|", *rows]
        )


def _of(licenses: dict[str, str], kind: str) -> str:
    return ", ".join(name for name, license in sorted(licenses.items()) if license == kind)


def measure(_: LicensesOptions) -> Licenses:
    """Reads the metadata of what is installed here."""
    ours = distribution("hackmatrix")
    extras = {*(ours.metadata.get_all("Provides-Extra") or ())} - {*ONLY_HERE}
    needed = _closure([("hackmatrix", frozenset())])
    everything = _closure([("hackmatrix", frozenset(extras))])
    return Licenses(
        {name: license_of(each) for name, each in needed.items()},
        {name: license_of(each) for name, each in everything.items() if name not in needed},
    )


def _closure(wanted: Iterable[tuple[str, frozenset[str]]]) -> dict[str, Distribution | None]:
    """What packages with extras need, and what that needs; None for what is not installed."""
    queue, seen = list(wanted), set(wanted)
    found: dict[str, Distribution | None] = {}
    for name, extras in queue:  # the list grows during the loop
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            found[name] = None
            continue
        for requirement in _requirements(found[name], extras):
            further = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if further not in seen:
                seen.add(further)
                queue.append(further)
    return {name: each for name, each in found.items() if name != "hackmatrix"}


def _requirements(package: Distribution | None, extras: frozenset[str]) -> Iterator[Requirement]:
    """What an installed package needs on this machine."""
    for text in (package and package.requires) or ():
        requirement, marker = Requirement(text), Requirement(text).marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def license_of(package: Distribution | None) -> str:
    """The license that a package states, in the words of SPDX where they are known."""
    if package is None:
        return "not installed here"

    def stated(field: str) -> list[str]:
        values = package.metadata.get_all(field) or ()
        return [value.strip().splitlines()[0] for value in values if value.strip()]

    approved = "License :: OSI Approved :: "
    named = [text.removeprefix(approved) for text in stated("Classifier") if approved in text]
    for line in (*stated("License-Expression"), *stated("License"), *named):
        for same, name in SAME:
            if re.fullmatch(same, line, re.IGNORECASE):
                return name
    # `License` may be the whole text, so what a classifier says comes before it.
    return next(iter((*stated("License-Expression"), *named, *stated("License"))), "-")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command."""
    return run_command(
        "licenses",
        measure,
        LicensesOptions,
        argv,
        purpose="Lists the licenses of all packages that the package and its extras need.",
        example="--json\n      by package",
    )


if __name__ == "__main__":
    sys.exit(main())
