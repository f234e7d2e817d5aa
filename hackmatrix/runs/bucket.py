"""Google Cloud Storage: addresses, and the objects of a bucket.

`google-cloud-storage` does the work (extra `bucket`); STORAGE_EMULATOR_HOST names another server.
Requests that fail for a moment are made again, with growing pauses, until a deadline.
"""

import base64
import contextlib
import os
import re
import threading
import warnings
import weakref
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from hackmatrix.core.errors import UserError
from hackmatrix.core.imports import missing

_URL = re.compile(r"gs:/{1,2}(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?P<path>/.*)?")
CREDENTIAL_SECONDS = 4.0  # the library itself looks for credentials for up to a minute
PATIENCE = 60.0  # seconds in which a request is made again
FIRST_PATIENCE = 12.0  # of the first request of a command, which a person waits for
_CHUNK = 8 * 2**20  # bytes; larger objects are sent in pieces, and a lost piece alone is sent again


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


class BucketError(OSError):
    """A bucket did not do what was asked; the message is one line and names the address."""


class Unreachable(BucketError):
    """There is no answer, or not a whole one: the same may go well later."""


class Forbidden(BucketError):
    """There are no credentials, or they do not allow what was asked."""


class Missing(BucketError):
    """There is no such object or bucket."""


class Changed(BucketError):
    """An object is not of the generation that was expected: another process has written it."""


class Object(NamedTuple):
    """An object of a bucket, without its content."""

    size: int  # bytes
    crc32c: str  # see `checksum`
    generation: int  # another number whenever it is written
    updated: datetime  # by the clock of the server


class Bucket:
    """The objects below an address, by their names relative to it. For one thread at a time."""

    def __init__(self, address: Address, patience: float) -> None:
        """Finds credentials; asks the bucket nothing yet.

        Args:
            address: of the folder, or of a whole bucket.
            patience: seconds in which a request that fails is made again.

        Raises:
            UserError: the library is not installed.
            Forbidden: there are no credentials; known after `CREDENTIAL_SECONDS`.
        """
        self.address = address
        self._client = _client(address)
        weakref.finalize(self, self._client.close)
        self._bucket = self._client.bucket(address.bucket)
        self._prefix = f"{address.path}/" if address.path else ""
        self.patience = patience

    @property
    def _options(self) -> dict[str, Any]:
        from google.cloud.storage.retry import DEFAULT_RETRY

        retry = DEFAULT_RETRY.with_delay(initial=0.2, maximum=8).with_timeout(self.patience)
        return {"timeout": self.patience / 2, "retry": retry}  # a piece is sent within that time

    def objects(self, prefix: str = "") -> dict[str, Object]:
        """All objects, or those whose names have a prefix; none whose name is no path."""
        fields = "items(name,size,crc32c,generation,updated),nextPageToken"
        with self._request(prefix):
            found = self._client.list_blobs(
                self._bucket, prefix=self._prefix + prefix, fields=fields, **self._options
            )
            named = {blob.name.removeprefix(self._prefix): _object(blob) for blob in found}
        return {name: each for name, each in named.items() if _is_path(name)}

    def folders(self) -> list[str]:
        """The names of the folders directly below the address."""
        with self._request(""):
            pages = self._client.list_blobs(
                self._bucket, prefix=self._prefix, delimiter="/", **self._options
            )
            for _ in pages:  # the folders are known when all pages were read
                pass
            names = [each.removeprefix(self._prefix).rstrip("/") for each in pages.prefixes]
        return sorted(name for name in names if _is_path(name))

    def find(self, name: str) -> Object | None:
        """An object; None if there is none of this name."""
        with self._request(name):
            blob = self._bucket.get_blob(self._prefix + name, **self._options)
        return None if blob is None else _object(blob)

    def read(self, name: str, start: int = 0) -> bytes:
        """The content of an object, from a byte on. A part of it is never taken for the whole.

        Raises:
            Missing: there is no such object, or none of so many bytes.
        """
        from google.api_core.exceptions import RequestRangeNotSatisfiable

        with self._request(name):
            blob = self._bucket.blob(self._prefix + name)
            try:
                content: bytes = blob.download_as_bytes(start=start or None, **self._options)
            except RequestRangeNotSatisfiable:
                raise Missing(f"{self.address / name}: is shorter than {start:,} bytes") from None
        return content

    def write(self, name: str, content: bytes, generation: int | None = None) -> Object:
        """Writes an object: as a whole or not at all.

        Args:
            name: of the object.
            content: of the object.
            generation: that of the object which it replaces, 0 for a new one; None: whatever is
                there.

        Raises:
            Changed: the object is of another generation. It may be that this very content was
                written and the answer was lost.
            Unreachable: it was not written, or damaged on the way.
        """
        with self._request(name):
            blob = self._bucket.blob(self._prefix + name, chunk_size=_CHUNK)
            blob.upload_from_string(
                content,
                content_type="application/octet-stream",
                if_generation_match=generation,
                **self._options,
            )
        if blob.crc32c != checksum(content):
            raise Unreachable(f"{self.address / name}: was damaged on its way to the bucket")
        return _object(blob)

    def delete(self, name: str, generation: int | None = None) -> None:
        """Deletes an object, if it is there.

        Raises:
            Changed: it is of another generation.
        """
        with contextlib.suppress(Missing), self._request(name):
            self._bucket.delete_blob(
                self._prefix + name, if_generation_match=generation, **self._options
            )

    @contextlib.contextmanager
    def _request(self, name: str) -> Iterator[None]:
        """Context of a request; turns the dozen kinds of errors of the library into ours."""
        try:
            yield
        except BucketError:
            raise
        except Exception as error:
            raise _error(self.address / name, error) from error


def checksum(content: bytes, before: str | None = None) -> str:
    """The checksum that a bucket gives for an object: CRC32C, in base 64.

    Args:
        content: of the object.
        before: checksum of what stands before the content, if it is not all.
    """
    import google_crc32c

    start = int.from_bytes(base64.b64decode(before or "AAAAAA=="), "big")
    return base64.b64encode(google_crc32c.extend(start, content).to_bytes(4, "big")).decode()


def check_installed(address: Address) -> None:
    """Raises `UserError` if the library is not installed."""
    # The library would ask for facts about the bucket, for traces that nobody collects.
    os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parts of grpc, which is not used here
            import google.cloud.storage  # noqa: F401
    except ImportError:
        raise UserError(f"{address}: {missing('google')}") from None


def _client(address: Address) -> Any:
    """A client of the library.

    Without credentials Google's library asks a server that there is in its cloud alone, and waits
    for it; that is done in a thread which is left behind if it takes too long.
    """
    check_installed(address)
    from google.cloud import storage

    if os.environ.get("STORAGE_EMULATOR_HOST"):
        return storage.Client(project=None)
    clients: list[Any] = []
    problems: list[Exception] = []

    def find() -> None:
        try:
            clients.append(storage.Client(project=None))  # objects need none
        except Exception as error:  # several kinds, also of files that are none
            problems.append(error)

    thread = threading.Thread(target=find, name="credentials", daemon=True)
    thread.start()
    thread.join(CREDENTIAL_SECONDS)
    if not clients:
        known = "DefaultCredentialsError"
        why = "" if not problems or type(problems[0]).__name__ == known else f" ({problems[0]})"
        raise Forbidden(
            f"{address}: there are no credentials of Google Cloud here{_one_line(why)}: "
            "`gcloud auth application-default login` makes some, or "
            "GOOGLE_APPLICATION_CREDENTIALS=FILE names the key of a service account"
        )
    return clients[0]


def _error(address: Address, error: Exception) -> BucketError:
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth

    text = getattr(error, "message", None) or str(error) or type(error).__name__
    reason = _one_line(re.sub(r"^[A-Z]+ http\S+: ", "", str(text)))
    if isinstance(error, api.RetryError) and isinstance(error.cause, Exception):
        return Unreachable(f"{address}: no answer: {_one_line(str(error.cause))}")
    if isinstance(error, api.NotFound):
        return Missing(f"{address}: there is no such bucket or object ({reason})")
    if isinstance(error, api.PreconditionFailed):
        return Changed(f"{address}: was written by another process")
    if isinstance(error, api.Unauthorized | api.Forbidden):
        return Forbidden(f"{address}: permission denied: {reason}")
    if isinstance(error, auth.GoogleAuthError) and not isinstance(error, auth.TransportError):
        return Forbidden(
            f"{address}: the credentials are of no use ({reason}): "
            "`gcloud auth application-default login` makes new ones"
        )
    if isinstance(error, api.ClientError) and error.code not in (408, 429):
        return BucketError(f"{address}: {reason}")
    return Unreachable(f"{address}: no answer: {reason}")


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


def _object(blob: Any) -> Object:
    return Object(int(blob.size or 0), blob.crc32c, int(blob.generation), blob.updated)


def _is_path(name: str) -> bool:
    """Whether it can be the name of a file below a folder, on any system."""
    return "\\" not in name and not {"", ".", ".."} & set(name.split("/"))
