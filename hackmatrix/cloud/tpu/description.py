"""The description of a TPU and of what it trains: a YAML file whose keys are these fields."""

import difflib
import hashlib
import re
import shlex
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hackmatrix.cloud.tpu.hardware import Slice, slice_of
from hackmatrix.core.errors import UserError
from hackmatrix.core.options import check, option, options_of
from hackmatrix.core.yaml_file import read_yaml

SECTION = "keys of the file, which these flags override"
_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,48}[a-z0-9])?")
_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z0-9]+")
_BUCKET = re.compile(r"gs://[a-z0-9][a-z0-9._-]+[a-z0-9](/[\w.-]+)*")
_BRANCH = re.compile(r"[\w.][\w./+-]*")
_OF_THE_TPU = ("--checkpoint-dir", "--resume", "--resume-from", "--resume-run", "--output-dir")
_OURS = (*_OF_THE_TPU, "--run-name", "--run-suffix", "--distributed", "--no-distributed")


@dataclass(frozen=True)
class Description:
    """A TPU and the training on it. It is validated on creation: `UserError` if it is invalid."""

    name: str = option("", "name of the TPU and of the run", section=SECTION)
    project: str = option("", "id of the project that pays", section=SECTION)
    zone: str = option("", "zone, such as us-central2-b", section=SECTION)
    type: str = option("", "type of TPU, such as v4-8", section=SECTION)
    spot: bool = option(True, "use a spot TPU: cheaper, but it can be preempted", section=SECTION)
    runtime: str | None = option(
        None, "software version of the machines; by default the type's", section=SECTION
    )
    flex_hours: int | None = option(
        None,
        "take a flex-start TPU, which Google deletes after so many hours, at most 168, not a "
        "spot or on-demand one",
        at_least=1,
        at_most=168,
        section=SECTION,
    )
    queue_hours: int | None = option(
        None, "hours after which a waiting request is made again", at_least=1, section=SECTION
    )
    service_account: str | None = option(
        None, "service account of the machines; by default the project's", section=SECTION
    )
    repo: str = option(
        "",
        "address from which the machines clone this repository; or a folder here, such as ., whose "
        "last commit goes through the bucket",
        section=SECTION,
    )
    branch: str = option("main", "branch to clone", section=SECTION)
    bucket: str | None = option(
        None, "gs://... for checkpoints; without it they stay on the TPU", section=SECTION
    )
    train: str = option("", "arguments of `hackmatrix train`, as typed", section=SECTION)
    secrets: Path | None = option(
        None, "file of NAME=value lines, such as WANDB_API_KEY", section=SECTION
    )
    end_date: str | None = option(
        None, "last day on which this may cost money, as 2026-12-31", section=SECTION
    )
    idle_hours: int | None = option(
        12,
        "hours without training after which the TPU deletes itself; needs a bucket",
        at_least=1,
        section=SECTION,
    )
    price: float | None = option(
        None,
        "dollars per chip and hour, 0 if free; by default the list price",
        at_least=0,
        section=SECTION,
    )

    def __post_init__(self) -> None:
        check(self)
        self._check_characters()
        for name in ("name", "project", "zone", "type", "repo"):
            if not getattr(self, name):
                raise UserError(f"{name} is missing: {options_of(Description)[name].meaning}")
        slice_of(self.type)
        self._check_form("project", _PROJECT, "the id of a project, such as my-project-123")
        self._check_form("name", _NAME, "up to 50 small letters, digits and -, letter first")
        self._check_form("zone", _ZONE, "a zone, such as us-central2-b")
        self._check_form("branch", _BRANCH, "the name of a branch")
        self._check_form("bucket", _BUCKET, "as gs://my-bucket or gs://my-bucket/folder")
        if self.is_local:
            if self.bucket is None:
                raise UserError(f"repo: the code of {self.repo} goes through a bucket: set bucket")
        else:
            _check_repo(self.repo)
        if self.flex_hours is not None and not self.slice.hardware.flex_start:
            raise UserError(f"flex_hours: Google has no flex-start TPUs of {self.slice.family}")
        _ = self.train_arguments, self.last_day

    @property
    def slice(self) -> Slice:
        """The TPU's chips and hosts."""
        return slice_of(self.type)

    @property
    def is_spot(self) -> bool:
        """Whether it is a spot TPU: a flex-start one is neither that nor on demand."""
        return self.spot and self.flex_hours is None

    @property
    def is_local(self) -> bool:
        """Whether the code comes from a folder of this machine."""
        return self.repo.startswith((".", "/", "~"))

    @property
    def runtime_version(self) -> str:
        """The software of the machines."""
        return self.runtime or self.slice.hardware.runtime

    @property
    def last_day(self) -> date | None:
        """The end date."""
        if self.end_date is None:
            return None
        try:
            return date.fromisoformat(self.end_date)
        except ValueError:
            raise UserError(
                f"end_date must be a day, as 2026-12-31, got {self.end_date!r:.40}"
            ) from None

    @property
    def train_arguments(self) -> list[str]:
        """The words of `train`.

        Raises:
            UserError: quotes are not closed, or a word is set by `hackmatrix tpu` itself.
        """
        try:
            arguments = shlex.split(self.train)
        except ValueError as error:
            raise UserError(f"train: {error}: {self.train!r:.80}") from None
        for word in arguments:
            if (name := word.split("=")[0]) in _OURS:
                raise UserError(f"train: {name} follows from name, type and bucket: leave it out")
        return arguments

    @property
    def job(self) -> str:
        """A short name of this training: another one if the run or its arguments differ."""
        return hashlib.sha256(repr((self.name, self.train_arguments)).encode()).hexdigest()[:8]

    @property
    def warnings(self) -> list[str]:
        """Warnings about settings that are probably meant otherwise."""
        family, warnings = self.slice.hardware, []
        if self.zone not in family.zones:
            warnings.append(
                f"no {self.slice.family} is known in {self.zone}: {', '.join(family.zones)}"
            )
        if self.is_spot and self.bucket is None:
            warnings.append(
                "spot without bucket: what is trained is lost when the TPU is taken away"
            )
        if self.flex_hours is not None and self.bucket is None:
            warnings.append("flex_hours without bucket: what is trained goes with the TPU")
        return warnings

    def _check_characters(self) -> None:
        """Raises `UserError` for characters that would end a line of a script, or are not shown."""
        texts = {field.name: getattr(self, field.name) for field in fields(self)}
        words = [("train", word) for word in self.train_arguments]  # which lines may separate
        for name, text in [*words, *(each for each in texts.items() if each[0] != "train")]:
            if isinstance(text, str | Path) and not str(text).isprintable():
                raise UserError(f"{name} must have no control characters, got {str(text)!r:.80}")

    def _check_form(self, name: str, form: re.Pattern[str], expected: str) -> None:
        text = getattr(self, name)
        if text is not None and not form.fullmatch(text):
            raise UserError(f"{name} must be {expected}, got {text!r:.80}")


def read_description(path: Path, flags: dict[str, Any]) -> Description:
    """Reads a description; flags override the file.

    Raises:
        UserError: the file can't be read, a key is unknown, or a value is not valid.
    """
    options = options_of(Description)
    in_file: dict[str, Any] = {}
    for name, value in read_yaml(path).items():
        if name not in options:
            near = difflib.get_close_matches(str(name), options, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(options)}"
            raise UserError(f"{path}: unknown key {str(name)!r:.60}, {hint}")
        # YAML reads 2026-12-31 as a date.
        text = value.isoformat() if isinstance(value, date) else value
        try:
            in_file[name] = options[name].convert(text)
        except ValueError as error:
            raise UserError(f"{path}: {name} {error}") from None
    try:
        description = Description(**{**in_file, **flags})
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if description.secrets is not None and not description.secrets.expanduser().is_file():
        raise UserError(f"{path}: secrets: there is no file {description.secrets}")
    return description


def _check_repo(repo: str) -> None:
    address = urlsplit(repo)
    if address.password or address.username not in (None, "git"):
        raise UserError(
            "repo holds a name or password, which everybody who may read the TPU's settings would "
            "see: make the repository public, or give the machines a deploy key"
        )
    if not re.fullmatch(r"(https://|ssh://|git@|file://)[\w.@:/~+-]+", repo):
        raise UserError(f"repo must be as https://github.com/NAME/hackmatrix.git, got {repo!r:.80}")
