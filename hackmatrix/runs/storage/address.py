"""Addresses in Google Cloud Storage."""

import re
from pathlib import Path
from typing import NamedTuple, Self

from hackmatrix.core.errors import UserError

_URL = re.compile(r"gs:/{1,2}(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?P<path>/.*)?")


class Address(NamedTuple):
    """The address of an object or a folder: gs://{bucket}/{path}."""

    bucket: str
    path: str  # parts joined by slashes; "" for the whole bucket

    @classmethod
    def of(cls, text: str | Path) -> Self:
        """Reads gs://BUCKET/PATH; also gs:/BUCKET/PATH, which a `Path` makes of it.

        Raises:
            UserError: it has another form.
        """
        match = _URL.fullmatch(str(text))
        parts = [part for part in (match["path"] or "").split("/") if part] if match else []
        if match is None or {".", ".."} & set(parts):
            shown = re.sub("^gs:/+", "gs://", str(text))
            raise UserError(f"{shown}: must have the form gs://BUCKET/FOLDER")
        return cls(match["bucket"], "/".join(parts))

    def __str__(self) -> str:
        return f"gs://{self.bucket}/{self.path}".rstrip("/")

    def __truediv__(self, name: str) -> "Address":
        return Address(self.bucket, f"{self.path}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> "Address":
        """The folder that it lies in."""
        return Address(self.bucket, self.path.rpartition("/")[0])

    def below(self, folder: Path) -> Path:
        """The place of this address under a local folder."""
        return folder.joinpath(self.bucket, *filter(None, self.path.split("/")))


def is_address(text: str | Path | None) -> bool:
    """Whether a path names something in a bucket."""
    return text is not None and str(text).startswith("gs:")
