"""Reads files of recorded games: one JSON object a line, plain or gzipped."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from hackmatrix.core.errors import UserError
from hackmatrix.game.conformance.field_tables import WrongField
from hackmatrix.game.conformance.format import read_game
from hackmatrix.game.conformance.recording import RecordedGame, rebuild_saved_states

_GZIP = b"\x1f\x8b"


def read_games(path: Path) -> Iterator[RecordedGame]:
    """Yields the games of a file.

    Raises:
        UserError: the file is missing, corrupt or of another format; the message names the place.
    """
    line_number = 0  # line number, from 1
    try:
        with path.open("rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            lines = cast(IO[bytes], gzip.GzipFile(fileobj=file)) if packed else file
            for line in lines:
                line_number += 1
                game = read_game(line)
                rebuild_saved_states(game)
                yield game
    except WrongField as error:
        raise UserError(f"{path}: line {line_number}: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise UserError(f"{path}: corrupt gzip file: {error}") from None
    if line_number == 0:
        raise UserError(f"{path}: no recorded games in it")
