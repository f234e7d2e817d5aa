"""Signatures of files that this user's processes wrote for each other, by a key in the home folder.

A file that came with something else, however it got its name and owner, has none: the key lies in a
folder of its own, so that whoever prepares a folder of files can't prepare the key.
"""

import hmac
import os
import secrets
import stat
from functools import cache
from pathlib import Path

from hackmatrix.core.files import open_no_link, write_atomically

SIZE = 32  # bytes of a signature, and of the key


def signature(content: bytes) -> bytes | None:
    """The signature of a content; None if this user can't keep a key."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    key = _key(home / ".hackmatrix" / "key")
    return None if key is None else hmac.digest(key, content, "sha256")


@cache
def _key(path: Path) -> bytes | None:
    """The key in a file of mode 600, which is made if it is not there or not private."""
    for _ in range(2):
        try:
            if (key := _read(path)) is not None:
                return key
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_atomically(path, secrets.token_bytes(SIZE), mode=0o600)
        except OSError:
            return None
    return None


def _read(path: Path) -> bytes | None:
    try:
        handle = open_no_link(path, os.O_RDONLY)
    except OSError:
        return None
    with open(handle, "rb") as file:
        facts = os.fstat(handle)
        private = os.name == "nt" or (
            facts.st_uid == os.getuid() and stat.S_IMODE(facts.st_mode) & 0o077 == 0
        )
        key = file.read(SIZE + 1) if stat.S_ISREG(facts.st_mode) and private else b""
    return key if len(key) == SIZE else None
