"""`hackmatrix reproduce`: trains a run again, and says whether it is the same."""

import contextlib
import dataclasses
import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hackmatrix.agents.networks.architectures import OWN_NETWORK
from hackmatrix.cli.arguments import parse
from hackmatrix.cli.buckets import local
from hackmatrix.cli.main import FAILED, SIGNALLED
from hackmatrix.core.imports import need
from hackmatrix.core.options import option

_EXAMPLE = """\
  hackmatrix reproduce checkpoints/my-run
      trains it again in a temporary folder, and compares every row of metrics and every param

Exits with 0 if all is equal, bit for bit, with 1 if not, with 2 if it can't be trained again."""


@dataclass(frozen=True)
class ReproduceOptions:
    """The command's options."""

    run: Path = option(dataclasses.MISSING, "folder of a run, here or as gs://...; it is only read")
    env: str | None = option(
        None, "environment that it trained on, if it is code of your own (module:function)"
    )
    architecture: str | None = option(None, OWN_NETWORK, names_code=True)
    output_dir: Path | None = option(
        None, "train in this new folder and keep it; in a temporary one unless given"
    )
    json: bool = option(False, "print one JSON object")


def main(argv: list[str]) -> int:
    """Runs the command."""
    options = parse(
        ReproduceOptions,
        argv,
        command="hackmatrix reproduce",
        purpose="Trains a run again from the settings that its folder records, and says whether "
        "every row of metrics and every param is equal, bit for bit.",
        example=_EXAMPLE,
    )
    need("jax", "flax")
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache
    from hackmatrix.learning.reporting.console import Console
    from hackmatrix.research.comparison.reproduction import compare, read_recorded, train_again

    recorded = read_recorded(local(options.run, checkpoints=True), options.env)
    if not options.json:
        for difference in recorded.differences:
            print(f"equality is not promised: {difference}", flush=True)
    enable_compilation_cache()
    with contextlib.ExitStack() as stack:
        folder = options.output_dir
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()), options.run.name)
        said = stack.enter_context(Console(io.StringIO()) if options.json else Console())
        outcome = train_again(recorded, folder, said)
        if outcome.signal is not None and outcome.end.value == "signal":
            return SIGNALLED + outcome.signal
        found = compare(recorded, outcome.run)
    print(json.dumps(found.as_dict()) if options.json else found.text())
    return 0 if found.is_equal else FAILED
