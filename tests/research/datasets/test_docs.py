"""The commands of docs/data.md are understood as they stand there."""

import re
import shlex

import pytest
from paths import DOCS, ROOT

from hackmatrix.cli.arguments import parse_explicit
from hackmatrix.cli.clone import CloneOptions
from hackmatrix.cli.data import DataExportOptions, DataVerifyOptions, RecordOptions
from hackmatrix.core.configs import config_file
from hackmatrix.core.options import options_of
from hackmatrix.learning.settings.config import OPTIONS, TrainConfig, TrainOptions

BLOCKS = re.findall(r"```bash\n(.*?)```", (DOCS / "data.md").read_text(), re.S)
LINES = [line for line in "".join(BLOCKS).splitlines() if line.startswith(("hackmatrix", "python"))]
KINDS: dict[str, list[type]] = {
    "hackmatrix data record": [RecordOptions],
    "hackmatrix data verify": [DataVerifyOptions],
    "hackmatrix data export": [DataExportOptions],
    "hackmatrix clone": [CloneOptions],
    "hackmatrix train": [TrainConfig, TrainOptions],
}


def test_the_document_shows_every_command() -> None:
    assert all(any(line.startswith(command) for line in LINES) for command in KINDS)


@pytest.mark.parametrize("line", LINES)
def test_every_line_is_understood(line: str) -> None:
    if line.startswith("python"):  # `test_data_command.py` runs them
        assert (ROOT / line.split()[1]).exists()
        return
    (command,) = (name for name in KINDS if line.startswith(name))
    words = shlex.split(line.removeprefix(command), comments=True)
    kinds = KINDS[command]
    tables = [OPTIONS if kind is TrainConfig else options_of(kind) for kind in kinds]
    given = parse_explicit(tables, words, command=command, purpose="", example="")
    makers = [TrainConfig.of if kind is TrainConfig else kind for kind in kinds]
    made = [make(**fields) for make, fields in zip(makers, given, strict=True)]
    for each in made:
        if (config := getattr(each, "config", None)) is not None:
            assert config_file(config).exists()
