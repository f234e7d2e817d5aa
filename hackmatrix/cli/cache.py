"""`hackmatrix cache`: shows and empties the folder of compiled programs."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from hackmatrix.cli.arguments import parse
from hackmatrix.core.compiled import cache_folder
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import option

_EXAMPLE = """\
  hackmatrix cache --empty
      removes every program that the cache has written, and no other file"""

_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))


@dataclass(frozen=True)
class CacheOptions:
    """The command's options."""

    empty: bool = option(False, "remove all programs; the next run compiles its own")


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        CacheOptions,
        argv,
        command="hackmatrix cache",
        purpose="Shows the compiled programs kept on disk, which let later runs start at once.",
        example=_EXAMPLE,
    )
    folder = _folder()
    print("\n".join(_empty(folder) if options.empty else _describe(folder)))
    return 0


def _folder() -> Path:
    name = os.environ.get(cache_folder.VARIABLE)
    folder = cache_folder.default_folder() if name is None else cache_folder.local(name)
    if folder is None:
        why = {
            None: "there is no home folder",
            "": f"{cache_folder.VARIABLE} is empty",
        }.get(
            name,
            f"{cache_folder.VARIABLE} names {name}, which is not a folder of this machine by its "
            "whole path",
        )
        raise UserError(
            f"no programs are kept here: {why}; let {cache_folder.VARIABLE} name a folder"
        )
    return folder


def _describe(folder: Path) -> list[str]:
    cached = cache_folder.entries(folder)
    lines = [
        f"{'folder':<10}{folder}",
        f"{'files':<10}{len(cached):,} of programs, {_megabytes(sum(e.size for e in cached))}",
    ]
    if cached:
        used = [entry.used for entry in cached]
        lines.append(f"{'used':<10}last {_ago(max(used))}; the oldest {_ago(min(used))}")
    return lines


def _empty(folder: Path) -> list[str]:
    cached = cache_folder.entries(folder)
    freed = cache_folder.remove(cached)
    left = cache_folder.entries(folder)
    if left:
        raise UserError(
            f"{len(left):,} of {len(cached):,} files in {folder} can't be removed, such as "
            f"{left[0].path.name}: they belong to another user, or a run is writing them"
        )
    return [f"removed {len(cached):,} files of programs from {folder}: {_megabytes(freed)} freed"]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _ago(moment: float) -> str:
    seconds = max(0, int(time.time() - moment))
    for name, length in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds // length:,} {name} ago"
    return "just now"
