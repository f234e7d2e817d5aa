"""Google Cloud Storage on this machine: the few calls that its library makes, with faults.

Objects are written whole or not at all, and only if they are of the generation that is asked for,
as in the real one. A fault happens to the next requests whose method and name fit.
"""

import base64
import gc
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import google_crc32c
import pytest

from hackmatrix.runs.buckets.lease import Lease

BUCKET = "my-bucket"


@dataclass
class Fault:
    """A fault of requests, `times` in number."""

    kind: str  # "refuse", "slow", "cut", "lose", "damage", or a status such as "503"
    times: int = 1
    method: str = ""  # GET, POST, PUT or DELETE; any if empty
    name: str = ""  # part of the object's name
    seconds: float = 0.0  # of "slow"


@dataclass
class Stored:
    """An object."""

    content: bytes
    generation: int
    updated: datetime

    def described(self, name: str) -> dict[str, Any]:
        crc = google_crc32c.value(self.content).to_bytes(4, "big")
        return {
            "kind": "storage#object",
            "name": name,
            "bucket": BUCKET,
            "size": str(len(self.content)),
            "crc32c": base64.b64encode(crc).decode(),
            "generation": str(self.generation),
            "metageneration": "1",
            "updated": self.updated.isoformat().replace("+00:00", "Z"),
        }


@dataclass
class FakeBucket:
    """The bucket, the faults to come, and what was asked: "PUT name" and the like, in order."""

    objects: dict[str, Stored] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    delay: float = 0.0  # seconds before each answer
    is_down: bool = False  # every connection is lost
    clock: timedelta = timedelta()  # what the server's clock is ahead
    has_failed: bool = False  # whether there were faults
    _generation: int = 0
    _uploads: dict[str, tuple[str, bytearray, int | None]] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.RLock)

    def put(self, name: str, content: bytes) -> Stored:
        """Writes an object, as another process would."""
        with self.lock:
            self._generation += 1
            updated = datetime.now(UTC) + self.clock
            stored = Stored(content, 1_000 + self._generation, updated)
            self.objects[name] = stored
            return stored

    def names(self, prefix: str = "") -> list[str]:
        with self.lock:
            return sorted(name for name in self.objects if name.startswith(prefix))

    def fault_of(self, method: str, name: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.method in ("", method) and fault.name in name:
                    self.has_failed = True
                    fault.times -= 1
                    if fault.times <= 0:
                        self.faults.remove(fault)
                    return fault
        return None


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _handler(bucket: FakeBucket) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each answer takes 40 ms

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:  # the client has gone
                self.close_connection = True

        def do_GET(self) -> None:
            self._serve("GET")

        def do_POST(self) -> None:
            self._serve("POST")

        def do_PUT(self) -> None:
            self._serve("PUT")

        def do_DELETE(self) -> None:
            self._serve("DELETE")

        def _serve(self, method: str) -> None:
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            found = re.fullmatch(
                r"(?:/upload|/download)?/storage/v1/b/([^/]+)(?:/o(?:/(.+))?)?", url.path
            )
            length = int(self.headers.get("Content-Length") or 0)
            name = unquote(found[2] or "") if found else ""
            name = name or query.get("name", "") or query.get("prefix", "")
            name = bucket._uploads.get(query.get("upload_id", ""), (name,))[0]
            head = self.rfile.read(min(length, 2000))
            if method == "POST" and not name and (told := re.search(rb'"name": ?"([^"]+)"', head)):
                name = told[1].decode()
            if bucket.is_down:
                bucket.has_failed = True
                self._reset()
                return
            fault = bucket.fault_of(method, name)
            kind = fault.kind if fault else ""
            if kind == "refuse":
                self._reset()
                return
            if kind == "cut" and method in ("POST", "PUT"):  # in the middle of the upload
                self._reset()
                return
            body = head + self.rfile.read(length - len(head))
            time.sleep(bucket.delay + (fault.seconds if fault else 0))
            with bucket.lock:
                bucket.calls.append(f"{method} {name}")
            try:
                if kind.isdigit():
                    raise _Refused(int(kind), f"made up, {kind}")
                if found is None or found[1] != BUCKET:
                    raise _Refused(404, "The specified bucket does not exist.")
                status, answer, headers = self._answer(method, url.path, query, name, body, kind)
            except _Refused as refused:
                about = {"error": {"code": refused.status, "message": str(refused)}}
                status, answer, headers = refused.status, json.dumps(about).encode(), {}
            if kind == "lose":  # done, but the answer does not arrive
                self._reset()
                return
            self.send_response(status)
            for header, value in headers.items():
                self.send_header(header, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if kind == "cut":
                self.wfile.write(answer[: len(answer) // 2])
                self._reset()
                return
            if kind == "damage" and method == "GET":
                answer = answer[: len(answer) // 2] + bytes(len(answer) - len(answer) // 2)
            self.wfile.write(answer)

        def _reset(self) -> None:
            self.close_connection = True
            linger = struct.pack("ii", 1, 0)  # a reset instead of an orderly end
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.shutdown(socket.SHUT_RDWR)

        def _answer(
            self, method: str, path: str, query: dict[str, str], name: str, body: bytes, kind: str
        ) -> tuple[int, bytes, dict[str, str]]:
            with bucket.lock:
                if path.startswith("/upload"):
                    return self._upload(method, query, name, body, kind)
                if path.startswith("/download") or query.get("alt") == "media":
                    return self._download(name)
                if method == "GET" and path.endswith("/o"):
                    return self._list(query)
                there = bucket.objects.get(name)
                if there is None:
                    raise _Refused(404, f"No such object: {name}")
                if method == "DELETE":
                    _check(there, _wanted(query))
                    del bucket.objects[name]
                    return 204, b"", {}
                return 200, json.dumps(there.described(name)).encode(), {}

        def _upload(
            self, method: str, query: dict[str, str], name: str, body: bytes, kind: str
        ) -> tuple[int, bytes, dict[str, str]]:
            if query.get("uploadType") == "multipart":
                boundary = b"--" + re.search(rb"boundary=\"?([^\";]+)", self._kind())[1]
                about, data = body.split(boundary)[1:3]
                name = json.loads(about.split(b"\r\n\r\n", 1)[1])["name"]
                content = data.split(b"\r\n\r\n", 1)[1][: -len(b"\r\n")]
                return self._store(name, content, _wanted(query), kind)
            if method == "POST":
                upload = f"upload-{len(bucket._uploads)}"
                bucket._uploads[upload] = (json.loads(body)["name"], bytearray(), _wanted(query))
                host = self.headers["Host"]
                place = f"http://{host}/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable"
                return 200, b"", {"Location": f"{place}&upload_id={upload}"}
            name, received, wanted = bucket._uploads[query["upload_id"]]
            said = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", self.headers["Content-Range"])
            assert said is not None
            if said[1] is not None:
                del received[int(said[1]) :]
                received += body
            if said[2] == "*" or len(received) < int(said[2]):
                return 308, b"", {"Range": f"bytes=0-{len(received) - 1}"} if received else {}
            return self._store(name, bytes(received), wanted, kind)

        def _store(
            self, name: str, content: bytes, wanted: int | None, kind: str
        ) -> tuple[int, bytes, dict[str, str]]:
            _check(bucket.objects.get(name), wanted)
            if kind == "damage":
                content = content[: len(content) // 2]
            stored = bucket.put(name, content)
            return 200, json.dumps(stored.described(name)).encode(), {}

        def _download(self, name: str) -> tuple[int, bytes, dict[str, str]]:
            there = bucket.objects.get(name)
            if there is None:
                raise _Refused(404, f"No such object: {name}")
            told = there.described(name)
            headers = {
                "X-Goog-Hash": f"crc32c={told['crc32c']}",
                "X-Goog-Generation": told["generation"],
                "X-Goog-Stored-Content-Length": told["size"],
            }
            size = len(there.content)
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
            if asked is None:
                return 200, there.content, headers
            start, end = int(asked[1]), int(asked[2] or size - 1)
            if start >= size:
                raise _Refused(416, "Requested range not satisfiable")
            part = there.content[start : end + 1]
            span = f"bytes {start}-{start + len(part) - 1}/{size}"
            return 206, part, {**headers, "Content-Range": span}

        def _list(self, query: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
            prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
            items, folders = [], []
            for name in bucket.names(prefix):
                rest = name[len(prefix) :]
                if delimiter and delimiter in rest:
                    folders.append(prefix + rest.split(delimiter)[0] + delimiter)
                else:
                    items.append(bucket.objects[name].described(name))
            told = {"kind": "storage#objects", "items": items, "prefixes": sorted(set(folders))}
            return 200, json.dumps(told).encode(), {}

        def _kind(self) -> bytes:
            return (self.headers["Content-Type"] or "").encode()

    return Handler


def _wanted(query: dict[str, str]) -> int | None:
    return int(query["ifGenerationMatch"]) if "ifGenerationMatch" in query else None


def _check(there: Stored | None, wanted: int | None) -> None:
    if wanted is not None and wanted != (there.generation if there else 0):
        raise _Refused(412, "At least one of the pre-conditions you specified did not hold.")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, address: Any) -> None:
        pass  # a client that went away


@contextmanager
def served(bucket: FakeBucket) -> Iterator[str]:
    """Serves a bucket; yields the value of STORAGE_EMULATOR_HOST."""
    server = _Server(("127.0.0.1", 0), _handler(bucket))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


LEFT_SOCKETS = "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"


@contextmanager
def emulated(patch: pytest.MonkeyPatch) -> Iterator[FakeBucket]:
    """A bucket to which the library goes; tests with it ignore `LEFT_SOCKETS`.

    The library leaves the sockets of downloads that failed to the garbage collector.
    """
    bucket = FakeBucket()
    leases: list[Lease] = []
    start = Lease.__init__

    def noted(lease: Lease, *args: Any) -> None:
        start(lease, *args)
        leases.append(lease)

    patch.setattr(Lease, "__init__", noted)
    with served(bucket) as url:
        patch.setenv("STORAGE_EMULATOR_HOST", url)
        before = set(threading.enumerate())
        yield bucket
        bucket.faults, bucket.is_down = [], False
        for lease in leases:
            lease.release()
        _await_clients(before)
    if bucket.has_failed:
        gc.collect()


def _await_clients(before: set[threading.Thread]) -> None:
    """Waits for the threads that talk to the bucket.

    They draw from the global `random` for their requests and pauses, which in another test would
    disturb hypothesis.
    """
    for thread in set(threading.enumerate()) - before:
        if thread.name in ("mirror", "lease"):
            thread.join(timeout=20)
            assert not thread.is_alive(), f"the thread {thread.name} is left behind"
