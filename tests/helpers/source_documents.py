"""The command lines, flags and names in the documents that this project was built from.

The documents are not part of the repository: `tests/commands/source_lines.yaml` holds what they
name, and is compared with them where they are there. `python tests/helpers/source_documents.py`
prints the lines.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from paths import ROOT

DOCUMENTS = ROOT.parent / "shared" / "seeds"

_PROGRAM = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:python3?|pip|conda|source|tail|tensorboard|wandb|export|\./[a-z-]+) "
    r"|\./[a-z-]+$"
)
_FILE = re.compile(r"(?:[\w.{}-]+/)*[\w{}-]+\.(?:py|yaml|txt|pkl|pt|npz|zip|log)|\w+\(\)")
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.M | re.S)
_NESTED = re.compile(r"""--command="(.*)"|-s training '(.*)'|startup-script='(.*)'""", re.S)


class SourceLine(NamedTuple):
    """A command line of a document."""

    document: str  # its title
    line: str  # on one row, without comments


def titles() -> dict[str, str]:
    """The texts of the documents by their titles."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(DOCUMENTS.glob("*.txt"))]
    return {text.partition("\n")[0].removeprefix("# "): text for text in texts}


def source_lines() -> list[SourceLine]:
    """Every command line of the documents, each once in a document."""
    lines = [SourceLine(title, line) for title, text in titles().items() for line in _lines(text)]
    return list(dict.fromkeys(lines))


def source_names() -> list[str]:
    """The files and folders that the documents name in `backquotes`, and those in their tables."""
    spans = [span for text in titles().values() for span in _spans(text)]
    return sorted({span for span in spans if _FILE.fullmatch(span)})


def source_flags() -> list[str]:
    """The flags that the documents name in `backquotes`."""
    spans = [span for text in titles().values() for span in _spans(text)]
    return sorted({flag for span in spans for flag in re.findall(r"^--[a-z-]+", span)})


def source_metrics() -> list[str]:
    """The metrics that the documents name in `backquotes`."""
    spans = [span for text in titles().values() for span in _spans(text)]
    names = r"(?:train|reward|actions|stats)/[a-z_]+"
    return sorted({span for span in spans if re.fullmatch(names, span)})


def _spans(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))


def _lines(text: str) -> Iterator[str]:
    for block in _FENCE.finditer(text):
        if block[1] == "bash":
            yield from _commands(block[2])
    for span in _spans(text):
        if _PROGRAM.match(span):
            yield span


def _commands(block: str) -> Iterator[str]:
    """The commands of a block, and those inside the texts that they hand to another shell."""
    for command in _joined(block):
        yield re.sub(r"\s+", " ", command)
        for nested in _NESTED.findall(command):
            inner = "".join(nested).replace("\\$", "$").removeprefix("#!/bin/bash\n")
            if "\n" in inner or " && " in inner:
                yield from _commands(inner)


def _joined(block: str) -> Iterator[str]:
    """Whole commands: what a backslash, an open quote or a loop continues stands together."""
    command = ""
    for line in block.splitlines():
        if not command or not _is_quoted(command):
            line = re.sub(r"(?:^|\s+)#(?!!).*", "", line)
        gap = " " if command.endswith("\\") else "\n"
        command = f"{command.removesuffix(chr(92))}{gap}{line}".lstrip()
        if line.endswith("\\") or _is_quoted(command):
            continue
        if command.startswith("for ") and not line.strip().endswith("done"):
            continue
        if command.strip():
            yield command.strip()
        command = ""


def _is_quoted(text: str) -> bool:
    """Whether a quotation begins in a text that does not end in it."""
    quote = ""
    for sign in re.sub(r"\\.", "", text):
        if sign == quote:
            quote = ""
        elif not quote and sign in "\"'":
            quote = sign
    return bool(quote)


if __name__ == "__main__":
    for each in source_lines():
        print(f"{each.document}: {each.line}")
