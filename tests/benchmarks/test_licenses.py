"""`benchmarks.licenses`: the licenses of what the package needs."""

import re
import tomllib
from email.message import Message
from importlib.metadata import Distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from paths import DOCS, ROOT

from benchmarks.licenses import ONLY_HERE, LicensesOptions, license_of, measure


class Stated(Distribution):
    def __init__(self, **fields: str) -> None:
        self.fields = Message()
        for name, value in fields.items():
            self.fields[name.replace("_", "-")] = value

    @property
    def metadata(self) -> Message:
        return self.fields

    def read_text(self, filename: str) -> None:
        return None

    def locate_file(self, path: str) -> str:
        return path


@pytest.mark.parametrize(
    ("stated", "license"),
    [
        (Stated(License_Expression="MIT OR Apache-2.0"), "MIT OR Apache-2.0"),
        (Stated(License="Apache License, Version 2.0"), "Apache-2.0"),
        (Stated(License="The MIT License (MIT)\n\nPermission is hereby granted"), "MIT"),
        (
            Stated(
                License="Copyright (c) 2001\nAll rights reserved",
                Classifier="License :: OSI Approved :: BSD License",
            ),
            "BSD License",
        ),
        (Stated(), "-"),
        (None, "not installed here"),
    ],
)
def test_a_license_is_what_the_package_states(stated: Stated | None, license: str) -> None:
    assert license_of(stated) == license


def test_every_license_is_of_a_kind_that_the_document_names() -> None:
    found = measure(LicensesOptions())
    assert "numpy" in found.needed
    assert "jax" in found.of_extras
    assert not {"pytest", "ruff", "mypy", "craftax"} & {*found.needed, *found.of_extras}
    (kinds,) = re.findall(r"license of the kinds\s+(.*?);", (DOCS / "install.md").read_text(), re.S)
    named = tuple(kinds.replace("\n", " ").replace(" and ", ", ").split(", "))
    stated = {*found.needed.values(), *found.of_extras.values()} - {"not installed here"}
    assert [each for each in stated if not each.startswith(named)] == []


def test_every_direct_dependency_is_among_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    texts = [text for extra in {*extras} - {*ONLY_HERE} for text in extras[extra]]
    named = {canonicalize_name(Requirement(text).name) for text in project["dependencies"] + texts}
    found = measure(LicensesOptions())
    assert named - {"hackmatrix", *found.needed, *found.of_extras} == set()  # extras name extras
