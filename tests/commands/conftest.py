"""The folder that all commands share."""

import pytest
from made_places import Places
from paths import ROOT


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Places:
    folder = tmp_path_factory.getbasetemp()
    return Places(folder if worker_id == "master" else folder.parent, ROOT / ".cache" / "commands")
