"""The commands that the documents show."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from paths import DOCS, ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

_OURS = re.compile(
    r"(?:for i in|(?:\.venv(?:-targets)?/bin/)?(?:hackmatrix|hackmatrix-game|make)(?![\w./-]|\()"
    r"|python3? (?:-m (?:benchmarks|hackmatrix)\.|scripts/|-c \"import hackmatrix))"
)
_GAP = re.compile(r"\.\.\.|\[FILE]|\b(?:RUN|FILE|DIR|POSITION|N|A B|module:function)\b")


class Command(NamedTuple):
    """A command line for a shell, and where it stands."""

    line: str
    place: str  # docs/training.md:12


def documented(documents: list[Path] = DOCUMENTS) -> tuple[list[Command], list[Command]]:
    """The commands of ours that the documents show in full, and those that they only mention.

    A mention has a gap, such as FILE, or it stands in a sentence, has no values, and all of its
    words and flags are those of another command: `hackmatrix page --export`.
    """
    found = list(_all(documents))
    full, mentions = [], []
    for command in found:
        others = (o.line for o in found if o.line != command.line and not _GAP.search(o.line))
        is_name = command.place.endswith("`") and any(covers(o, command.line) for o in others)
        (mentions if is_name or _GAP.search(command.line) else full).append(command)
    return full, mentions


def covers(line: str, mention: str) -> bool:
    """Whether a command has the words with which a mention begins, and all of its flags."""
    words, flags, values = _parts(mention)
    its_words, its_flags, _ = _parts(line)
    is_part = its_words[: len(words)] == words and its_flags >= flags
    return is_part and (not values or bool(_GAP.search(mention)))


def made_small(line: str, small: str) -> str:
    """The line with flags in the place of its own."""
    for name in re.findall(r"--[\w-]+", small):
        line = re.sub(rf" {name}(?: +(?!-)(?:\"[^\"]*\"|\S+)|=\S+)?(?= |$)", "", line)
    end = re.compile(r"(?= -- | [<>&]|$)")
    return end.sub(f" {small}" if small else "", line, count=1 + line.count(" & hackmatrix"))


def _parts(line: str) -> tuple[list[str], set[str], list[str]]:
    """The words with which a line begins, its flags, and what else there is but gaps."""
    line = _GAP.sub("gap", line)
    program = re.match(r"python3? (?:-m )?\S+|\S+", line)
    assert program
    rest = line[program.end() :].split()
    words = [program[0].removeprefix(".venv/bin/").removeprefix(".venv-targets/bin/")]
    while rest and re.fullmatch(r"[a-z][a-z0-9]+", rest[0]) and "gap" not in rest[0]:
        words.append(rest.pop(0))
    flags = {word for word in rest if word.startswith("--")}
    return words, flags, [word for word in rest if word not in flags and "gap" not in word]


def _all(documents: list[Path]) -> Iterator[Command]:
    for document in documents:
        text = document.read_text()
        name = document.relative_to(ROOT).as_posix()
        fence = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
        for block in fence.finditer(text):
            first = text.count("\n", 0, block.start()) + 2
            for number, line in _lines(block[2], prompts=block[1] != "bash"):
                if _OURS.match(line):
                    yield Command(line, f"{name}:{first + number}")
        prose = fence.sub(lambda block: "\n" * block[0].count("\n"), text)
        for span in re.finditer(r"`([^`]+)`", prose):
            line = " ".join(span[1].replace("\\|", "|").split())
            if _OURS.match(line):
                yield Command(line, f"{name}:{prose.count(chr(10), 0, span.start()) + 1}`")


def _lines(block: str, *, prompts: bool) -> Iterator[tuple[int, str]]:
    """The command lines of a block, without comments; of a session only what follows `$`.

    A loop is one line, and so are the processes of one training.
    """
    together, start = "", 0
    for number, line in enumerate(block.splitlines()):
        line = re.sub(r"\s+#\s.*", "", line).strip()
        if prompts:
            if line.startswith("$ "):
                yield number, line[2:]
            continue
        start = start if together else number
        together = f"{together.removesuffix(chr(92)).rstrip()} {line}".strip()
        if re.search(r"--process-id 0\b", line):
            together += " &"
        elif line.endswith("\\") or (together.startswith("for ") and "done" not in line):
            continue
        elif together:
            yield start, together
            together = ""
