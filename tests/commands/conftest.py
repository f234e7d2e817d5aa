"""The folder that all commands share."""

import subprocess

import pytest
from made_places import Places
from paths import ROOT


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Places:
    # A copy of the repository would install itself into the .venv that it borrows.
    if subprocess.run(["make", "--question", ".venv/.ready"], cwd=ROOT).returncode:
        pytest.exit(".venv is out of date, run `make setup` first", returncode=2)
    folder = tmp_path_factory.getbasetemp()
    return Places(folder if worker_id == "master" else folder.parent, ROOT / ".cache" / "commands")
