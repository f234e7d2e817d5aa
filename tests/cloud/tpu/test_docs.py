"""docs/tpu.md: each command line works, and its table is that of the code."""

import re
import shlex
from pathlib import Path

import pytest
from paths import CONFIGS, DOCS
from tpu_world import FakeGcloud

from hackmatrix.cli.main import COMMANDS, main
from hackmatrix.cloud.tpu.hardware import AS_OF, FAMILIES

TEXT = (DOCS / "tpu.md").read_text()
# Lines of other programs, of which nothing is checked but that they stand there.
OTHERS = {
    "gcloud init",
    "eval $(ssh-agent)",
    "[ -e ~/.ssh/google_compute_engine ] || ssh-keygen -t rsa -f ~/.ssh/google_compute_engine",
    "ssh-add ~/.ssh/google_compute_engine",
}
FLAGS = "--project hack-matrix --bucket gs://my-bucket --repo https://github.com/me/hackmatrix.git"


def documented_lines() -> list[str]:
    """Every command line of the examples, and in running text those of `hackmatrix`."""
    blocks = re.findall(r"```bash\n(.*?)```", TEXT, re.S)
    examples = [line for block in blocks for line in block.splitlines()]
    in_text = re.findall(r"`(hackmatrix [^`\n]*my-tpu\.yaml[^`\n]*)`", TEXT)
    return list(dict.fromkeys([*examples, *in_text]))


@pytest.mark.parametrize("line", documented_lines())
def test_every_command_line_is_understood(
    line: str, gcloud: FakeGcloud, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if line in OTHERS:
        return
    if line.startswith("cp "):
        assert line == "cp hackmatrix/configs/tpu/spot_tpu.yaml my-tpu.yaml"
        return
    program, name, *words = shlex.split(line.partition(" > ")[0])
    assert program == "hackmatrix"
    if name != "tpu":
        assert name in COMMANDS
        return
    (tmp_path / "my-tpu.yaml").write_text((CONFIGS / "tpu" / "spot_tpu.yaml").read_text())
    at = words.index("--") if "--" in words else len(words)
    dry = [] if words[0] == "export" or "--dry-run" in words else ["--dry-run"]
    code = main(["tpu", *words[:at], *shlex.split(FLAGS), *dry, *words[at:]])
    assert code == 0, capsys.readouterr().err
    assert gcloud.calls == []
    out = capsys.readouterr().out
    assert out.startswith(("#", "---", "name:")) if words[0] == "export" else "$ gcloud " in out


def test_every_subcommand_is_documented() -> None:
    from hackmatrix.cli.tpu import SUBCOMMANDS

    for name in SUBCOMMANDS:
        assert f"hackmatrix tpu {name} my-tpu.yaml" in TEXT, name


def test_the_types_are_those_of_the_table() -> None:
    assert type_rows() in TEXT
    assert f"on {AS_OF.isoformat()} (`hackmatrix/cloud/tpu/hardware.py`)" in TEXT


def test_it_says_that_no_tpu_was_at_hand() -> None:
    assert "**Never run on a real TPU.**" in TEXT


def type_rows() -> str:
    rows = []
    for family in FAMILIES.values():
        chips = f"N/{family.cores_per_chip}" if family.cores_per_chip > 1 else "N"
        zones = ", ".join(family.zones)
        name = f"{family.prefix}N"
        rows.append(f"| {name} | {chips} | {zones} | `{family.runtime}` | {family.price:.2f} |")
    return "\n".join(rows)
