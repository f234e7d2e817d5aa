"""The repository for those who want to join: CI, hooks, citation, links."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in read(workflow)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_jobs_on_known_machines(workflow: Path) -> None:
    about = read(workflow)
    # YAML 1.1 reads the key `on` as true.
    assert {"name", True, "jobs"} <= set(about)
    for job in about["jobs"].values():
        several = "matrix.machine" in job["runs-on"]
        machines = job["strategy"]["matrix"]["machine"] if several else [job["runs-on"]]
        assert all(re.match(r"ubuntu-|macos-|windows-", machine) for machine in machines)
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d[\d.]*", step.get("uses", "actions/x@v1"))


def jobs_of(name: str) -> dict[str, Any]:
    jobs: dict[str, Any] = read(ROOT / ".github" / "workflows" / f"{name}.yml")["jobs"]
    return jobs


@pytest.mark.parametrize(
    ("name", "job", "command"), [("checks", "quick", "make test"), ("nightly", "all", ".ci/run")]
)
def test_all_supported_pythons_are_checked(name: str, job: str, command: str) -> None:
    about = jobs_of(name)[job]
    versions = [text.rsplit(" ", 1)[1] for text in PROJECT["classifiers"] if "Python :: 3" in text]
    assert about["strategy"]["matrix"]["python"] == versions
    assert about["steps"][-1]["run"] == command


def test_a_tag_alone_publishes_without_a_password() -> None:
    publish = jobs_of("wheels")["publish"]
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert publish["permissions"] == {"id-token": "write"}
    assert set(publish["needs"]) == set(jobs_of("wheels")) - {"publish"}
    assert "secrets." not in "".join(workflow.read_text() for workflow in WORKFLOWS)


def test_what_workflows_run_is_there_and_can_be_run() -> None:
    commands = [step["run"] for workflow in WORKFLOWS for step in steps(workflow) if "run" in step]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    made = [command.split()[1] for command in commands if command.startswith("make ")]
    assert {"test", "slow", "setup"} == {*made} <= {*targets}
    ours = [command for command in commands if command.startswith(".ci/")]
    assert {*ours} == {".ci/core", ".ci/run"}
    for command in ours:
        assert (ROOT / command).stat().st_mode & 0o111, command
        subprocess.run(["bash", "-n", ROOT / command], check=True)
    named = re.findall(r"(?:^|\s)(tests/\S+)", (ROOT / ".ci" / "core").read_text())
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_hooks_are_those_of_make_lint() -> None:
    (local,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    tools = {hook["entry"].split()[0].rsplit("/", 1)[1] for hook in local["hooks"]}
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert lint
    assert tools == set(re.findall(r"\$\(BIN\)/(\w+)", lint[1]))


def test_the_citation_is_of_this_version() -> None:
    about = read(ROOT / "CITATION.cff")
    assert about["version"] == PROJECT["version"]
    assert about["license"] == PROJECT["license"]
    assert about["authors"] == PROJECT["authors"]


def test_the_changelog_has_this_version() -> None:
    (ours, *_) = re.findall(r"^## \[([\d.]+)]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert ours == PROJECT["version"]


@pytest.mark.parametrize("document", sorted(ROOT.glob("*.md")), ids=lambda path: path.stem)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!http)([^)#]+)", document.read_text())
    assert [target for target in targets if not (ROOT / target).exists()] == []


@pytest.mark.thorough
def test_the_quickest_test_is_of_one_rule_in_one_engine() -> None:
    (line,) = re.findall(r"^\.venv/bin/(pytest .*EXCH.*?)  #", CONTRIBUTING.read_text(), re.M)
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(line), "-v"], cwd=ROOT, capture_output=True, text=True
    )
    passed = re.findall(r"test_rule\[(\w+)-.*EXCH.* PASSED", done.stdout)
    assert passed, done.stdout
    assert {*passed} == {"python"}
