"""The repository as others meet it: what its files name, what is locked, what CI runs."""

import email
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from paths import CONFIGS, DOCS, ROOT
from suites import first_quickly

from hackmatrix.core.imports import EXTRAS as MODULES
from hatch_build import without_relative_links

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]

# Joined here, because this file is searched too.
REGISTRIES = [f"{name}.org" for name in ("pypi", "pythonhosted", "npmjs", "anaconda")]
REGISTRIES += [f"{name}.io" for name in ("conda", "crates", "docker", "ghcr")] + ["npmjs" + ".com"]
# Absolute paths that only mean something on the machine of whoever wrote them.
LOCAL_PATH = re.compile(r"(?<![\w./~-])/(?:root|work|home|Users|opt/pypi|opt/wheels)/\w?")


def repository_files() -> list[Path]:
    """Files that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        pytest.skip("not a git checkout")
    return [path for line in result.stdout.splitlines() if (path := ROOT / line).is_file()]


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line[:200]}"
        for path in repository_files()
        if b"\0" not in (data := path.read_bytes())
        for number, line in enumerate(data.decode(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


LOCKS = {"dev": "requirements.lock", "bench": "requirements-bench.lock"}


def with_its_own(texts: list[str]) -> list[Requirement]:
    """Requirements, with those of the extras of this package that stand among them."""
    found = []
    for requirement in map(Requirement, texts):
        own = requirement.name == "hackmatrix"
        names = sorted(requirement.extras) if own else []
        found += [one for name in names for one in with_its_own(EXTRAS[name])]
        found += [] if own else [requirement]
    return found


def locked(extra: str) -> list[Requirement]:
    lines = (ROOT / LOCKS[extra]).read_text().splitlines()
    return [Requirement(line.rstrip(" \\")) for line in lines if re.match(r"\w", line)]


def wanted() -> list[tuple[str, Requirement]]:
    development = EXTRAS["all"] + PYPROJECT["dependency-groups"]["dev"]
    groups = {"dev": development, "bench": EXTRAS["bench"]}
    return [
        (lock, requirement)
        for lock, texts in groups.items()
        for requirement in with_its_own(PROJECT["dependencies"] + texts)
    ]


def files_of_wheel() -> set[str]:
    """Paths in the wheel, without its metadata."""
    files = WheelBuilder(str(ROOT)).recurse_included_files()
    return {file.distribution_path for file in files}


def test_the_wheel_holds_the_package_alone() -> None:
    files = files_of_wheel()
    modules = [*(ROOT / "hackmatrix").rglob("*.py"), *(ROOT / "hackmatrix").rglob("*.pyi")]
    package = {str(path.relative_to(ROOT)) for path in modules}
    folders = ["ui/page/static", "ui/page/exported", "ui/monitor/static", "ui/web/static"]
    page = {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / "hackmatrix" / folder).iterdir()
    }
    configs = {str(path.relative_to(ROOT)) for path in CONFIGS.rglob("*.yaml")}
    assert "hackmatrix/configs/best.yaml" in configs
    params = ("final_params", "score_params", "raw_params")
    agent = {f"hackmatrix/agents/shipped/{x}.{kind}" for x in params for kind in ("npz", "json")}
    agent |= {"hackmatrix/agents/shipped/win_chance.json", "hackmatrix/ui/session/puzzles.json"}
    messages = {f"hackmatrix/ui/session/messages.{kind}" for kind in ("json", "d.ts")}
    others = {"hackmatrix/py.typed", "hackmatrix_command.py", *messages}
    documents = {f"hackmatrix/{path.relative_to(ROOT)}" for path in DOCS.rglob("*.md")}
    assert "hackmatrix/docs/networks.md" in documents
    native = ROOT / "hackmatrix/game/native"  # what NVRTC compiles
    kernels = {
        str(path.relative_to(ROOT)) for path in (*native.glob("*.hpp"), native / "kernels.cu")
    }
    assert files == package | page | agent | configs | others | documents | kernels
    assert "hackmatrix/research/bench/env.py" in files
    assert (ROOT / "benchmarks" / "peers.py").exists()  # and is not among them


def test_the_package_imports_no_benchmark_of_the_repository() -> None:
    imported = re.compile(r"^\s*(?:from|import) benchmarks\b", re.MULTILINE)
    for file in filter(lambda name: name.endswith(".py"), files_of_wheel()):
        assert not imported.search((ROOT / file).read_text()), file


def test_the_extra_of_every_package_that_may_be_missing_brings_it() -> None:
    """`pip install 'hackmatrix[EXTRA]'`, as an error says, ends that error."""
    packages = {
        **{module: module for module in MODULES},
        "PIL": "pillow",
        "google": "google-cloud-storage",
        "orbax": "orbax-checkpoint",
        # These come with another one.
        "jaxlib": "jax",
        "google_crc32c": "google-cloud-storage",
        **dict.fromkeys(("jax_plugins", "libtpu"), "jax"),
        **dict.fromkeys(("stable_baselines3", "torch"), "sb3-contrib"),
    }
    for module, extra in MODULES.items():
        brought = {canonicalize_name(each.name) for each in with_its_own(EXTRAS[extra])}
        assert canonicalize_name(packages[module]) in brought, (module, extra)


def test_all_is_every_extra_of_users_but_what_brings_torch() -> None:
    (everything,) = map(Requirement, EXTRAS["all"])
    assert everything.extras == EXTRAS.keys() - {"all", "bench", "sb3", "targets"}


def test_no_file_names_a_package_registry() -> None:
    assert not lines_with(re.compile("|".join(map(re.escape, REGISTRIES))))


def test_no_file_names_a_path_of_one_machine() -> None:
    assert not lines_with(LOCAL_PATH)


@pytest.mark.parametrize("python", first_quickly(["3.11", "3.12", "3.13"]))
def test_locks_cover_all_dependencies(python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    for extra, requirement in wanted():
        pins = [
            next(iter(pin.specifier)).version
            for pin in locked(extra)
            if canonicalize_name(pin.name) == canonicalize_name(requirement.name)
            and (pin.marker is None or pin.marker.evaluate(environment))
        ]
        assert len(pins) == 1, (extra, requirement)
        assert pins[0] in requirement.specifier, (extra, requirement)


def test_the_native_engine_is_built_for_the_oldest_jax_that_is_taken() -> None:
    """A newer jaxlib's headers make calls that an older one refuses."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    (built,) = (Requirement(each) for each in wanted if each.startswith("jaxlib"))
    (oldest,) = (Requirement(each) for each in EXTRAS["train"] if each.startswith("jax>"))
    assert str(built.specifier).replace("==", ">=") in str(oldest.specifier).split(",")


@pytest.mark.parametrize("extra", LOCKS)
def test_every_locked_version_has_a_hash(extra: str) -> None:
    text = (ROOT / LOCKS[extra]).read_text()
    assert len(re.findall(r"^\w.*==.* \\\n    --hash=sha256:", text, re.M)) == len(locked(extra))


def test_both_locks_have_the_same_versions() -> None:
    pins = {extra: {str(pin) for pin in locked(extra)} for extra in LOCKS}
    shared = {pin.name for pin in locked("dev")} & {pin.name for pin in locked("bench")}
    assert "jax" in shared
    for name in shared:
        dev, bench = ({p for p in pins[extra] if Requirement(p).name == name} for extra in LOCKS)
        assert {Requirement(p).specifier for p in dev} == {Requirement(p).specifier for p in bench}


def test_ci_runs_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"^(make \w+) +# .*\btest", readme, re.M)
    assert command is not None
    assert re.search(rf"^{command[1]}\b", (ROOT / ".ci" / "run").read_text(), re.M)


def test_the_address_of_the_repository_is_written_once() -> None:
    (address,) = PROJECT["urls"].values()
    assert lines_with(re.compile(re.escape(urlsplit(address).netloc))) == [
        f"pyproject.toml:{number}: {line}"
        for number, line in enumerate((ROOT / "pyproject.toml").read_text().splitlines(), 1)
        if address in line
    ]
    # A host or an owner that is not there.
    assert not lines_with(re.compile("github" + r"\.com/hackmatrix|hackmatrix\.github"))


@pytest.mark.slow
def test_sources_and_wheel_describe_the_package_without_relative_links(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory"]
    subprocess.run([*command, tmp_path, "--target", "sdist"], cwd=ROOT, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())
    subprocess.run([*command, tmp_path, "--target", "wheel"], cwd=unpacked, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        (place,) = (name for name in files.namelist() if name.endswith("/METADATA"))
        facts = email.message_from_string(files.read(place).decode())
    assert facts["Description-Content-Type"] == "text/markdown"
    text = facts.get_payload()
    assert isinstance(text, str)
    assert text.startswith("# HackMatrix\n")
    assert "[charleseff/hack-matrix](https://" in text
    assert [target for target in targets_of(text) if not target.startswith("https://")] == []
    assert ".invalid" not in text


def targets_of(text: str) -> list[str]:
    return re.findall(r'(?:]\(|src=")([^)"]+)', text)


def test_links_of_the_description_lead_into_the_repository_once_it_is_on_a_host() -> None:
    readme, home = (ROOT / "README.md").read_text(), "https://host.example/us/it"
    relative = [target for target in targets_of(readme) if not target.startswith("https://")]
    assert len(relative) > 20
    absolute = targets_of(without_relative_links(readme, home, "1.2"))
    here = [re.sub(rf"{home}/(?:raw|blob)/v1.2/", "", target) for target in absolute]
    assert here == targets_of(readme)
