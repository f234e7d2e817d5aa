"""Replays as frames, one or several side by side, and frames as GIF and MP4."""

import io
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from PIL import Image

from hackmatrix.core.files import write_atomically
from hackmatrix.game.drawing.marks import SvgGroup, fit_text
from hackmatrix.game.drawing.picture import HEIGHT, WIDTH, scene
from hackmatrix.game.drawing.pixels import raster
from hackmatrix.game.drawing.visible_state import view
from hackmatrix.game.engine.replay import Replay

_COLOURS = 127  # of the one palette of a GIF; with the transparent one, a power of two
_SAMPLES = 12  # frames that the palette is made of
_END = 2.0  # seconds that the last frame stays
_NAME = 60  # units above a board for the name of its game


def frames(replay: Replay, width: int, start: int = 0) -> list[Image.Image]:
    """A picture of every state from step `start` on, `width` pixels wide."""
    states = islice(replay.states(), start, None)
    return [raster(scene(view(state)), (WIDTH, HEIGHT), width) for state in states]


def frames_beside(replays: Mapping[str, Replay], width: int, start: int = 0) -> list[Image.Image]:
    """Pictures of several games at the same step, under their names, `width` pixels wide together.

    A game that is over stays as it ended.
    """
    size = WIDTH * len(replays), HEIGHT + _NAME
    longest = max(len(replay.actions) for replay in replays.values())
    boards: dict[str, tuple[SvgGroup, ...]] = {}
    games = {name: replay.states() for name, replay in replays.items()}
    pictures = []
    for step in range(longest + 1):
        for name, game in games.items():
            if (state := next(game, None)) is not None:
                boards[name] = (_name(name), SvgGroup("", 0, _NAME, tuple(scene(view(state)))))
        if step >= start:
            row = [SvgGroup("", i * WIDTH, 0, marks) for i, marks in enumerate(boards.values())]
            pictures.append(raster(row, size, width))
    return pictures


def _name(name: str) -> SvgGroup:
    return SvgGroup("", 0, 0, (fit_text(name.upper(), 24, 24, WIDTH - 48, 24, 0, "text"),))


def write_gif(path: Path, pictures: list[Image.Image], seconds: float) -> None:
    """Writes an animation that repeats, with one palette for all frames, atomically.

    Args:
        path: the file.
        pictures: its frames.
        seconds: how long a frame stays.
    """
    samples = pictures[:: -(-len(pictures) // _SAMPLES)]
    width, height = samples[0].size
    together = Image.new("RGB", (width, height * len(samples)))
    for i, sample in enumerate(samples):
        together.paste(sample, (0, i * height))
    palette = together.quantize(_COLOURS)
    first, *rest = [
        picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures
    ]
    times = [round(1000 * seconds)] * len(rest) + [round(1000 * _END)]
    buffer = io.BytesIO()
    first.save(
        buffer, "GIF", save_all=True, append_images=rest, duration=times, loop=0, optimize=True
    )
    write_atomically(path, buffer.getvalue())


def write_mp4(path: Path, pictures: Iterable[Image.Image], seconds: float) -> None:
    """Writes a film, atomically."""
    import imageio_ffmpeg

    partial = path.with_name(f".{path.stem}-{os.getpid()}.mp4")
    writer = None
    try:
        for picture in pictures:
            if writer is None:
                size = picture.size
                writer = imageio_ffmpeg.write_frames(
                    str(partial), size, fps=1 / seconds, macro_block_size=2
                )
                writer.send(None)
            writer.send(picture.tobytes())
        if writer is not None:
            for _ in range(round(_END / seconds)):
                writer.send(picture.tobytes())
            writer.close()
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
