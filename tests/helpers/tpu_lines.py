"""Every command line of `hackmatrix tpu`."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from hackmatrix.cloud.tpu import gcloud_lines as commands
from hackmatrix.cloud.tpu.description import Description
from hackmatrix.cloud.tpu.gcloud_lines import Argv
from hackmatrix.cloud.tpu.hosts import look_command
from hackmatrix.cloud.tpu.job_files import export
from hackmatrix.cloud.tpu.run import train

SCRIPT = Path("setup.sh")


def every_line(tpu: Description) -> Iterator[Argv]:
    """Every command line of `hackmatrix tpu` and of its export of a recipe."""
    yield commands.create(tpu, SCRIPT)
    yield commands.create_directly(tpu, SCRIPT)
    yield commands.describe_request(tpu)
    yield commands.describe(tpu)
    yield commands.delete_request(tpu)
    yield commands.delete(tpu)
    yield commands.start(tpu)
    yield commands.stop(tpu)
    yield from commands.list_all(tpu)
    yield commands.ssh(tpu)
    yield commands.ssh(tpu, look_command(tpu, 7), "0-3")
    yield commands.attach(tpu)
    yield commands.logs(tpu, 10, "0", service=True, follow=True)
    yield from commands.set_up(tpu, SCRIPT)
    yield commands.fetch(tpu, Path("checkpoints"))
    yield commands.enable_services(tpu)
    yield commands.project_number(tpu)
    yield from commands.prepare(tpu, "a@b.com")
    yield commands.quota(tpu)
    yield commands.runtimes(tpu)
    yield commands.types(tpu)
    yield from train(tpu, again=True)
    if tpu.bucket is not None:
        yield commands.upload_code(tpu, Path("0123.tar.gz"))
        yield commands.list_run(tpu)
        yield commands.list_wheels(tpu)
        if tpu.slice.hardware.groups:
            recipe = export("mig", tpu)
            yield from (
                shlex.split(line) for line in recipe.splitlines() if "gcloud comp" in line[:13]
            )
