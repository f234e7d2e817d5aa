"""`hackmatrix replay`: a saved game as a film, a picture, or text."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hackmatrix.cli.arguments import parse
from hackmatrix.core.errors import UserError
from hackmatrix.core.extras import need
from hackmatrix.core.options import check, option

if TYPE_CHECKING:
    from hackmatrix.game.engine.replay import Replay


@dataclass(frozen=True)
class ReplayOptions:
    """The command's options."""

    file: Path = option(dataclasses.MISSING, "a saved game (.json) of the page")
    gif: Path | None = option(None, "write an animation")
    mp4: Path | None = option(None, "write a film (needs the extra `mp4`)")
    svg: Path | None = option(None, "write a picture of one step")
    terminal: bool = option(False, "show it in the terminal")
    step: int | None = option(None, "the step that --svg shows; otherwise the last", at_least=0)
    start: int = option(0, "first step of --gif, --mp4 and --terminal", at_least=0)
    width: int = option(600, "of films, in pixels; an even number", at_least=64, at_most=2_160)
    speed: float = option(3.0, "steps per second", at_least=0.1, at_most=50)

    def __post_init__(self) -> None:
        check(self)
        if self.width % 2:
            raise UserError(f"--width must be an even number, got {self.width}")
        if not (self.gif or self.mp4 or self.svg or self.terminal):
            raise UserError("give --gif FILE, --mp4 FILE, --svg FILE or --terminal")
        if self.step is not None and self.svg is None:
            raise UserError("--step goes with --svg")


def main(argv: list[str]) -> int:
    """Writes what is asked for, and says where."""
    options = parse(
        ReplayOptions,
        argv,
        command="hackmatrix replay",
        purpose="Shows a saved game, or writes it as an animation, a film or a picture.",
        example="  hackmatrix replay game.json --gif game.gif\n"
        "      writes an animation of 600 pixels, 3 steps a second",
    )
    from hackmatrix.game.engine.replay import load_replay

    replay = load_replay(options.file)
    last = len(replay.actions)
    for name, step in (("step", options.step), ("start", options.start)):
        if step is not None and step > last:
            raise UserError(
                f"--{name} must be at most {last}, the last step of this game, got {step}"
            )
    if options.svg is not None:
        _write_svg(replay, options.svg, options.step)
    if options.gif is not None or options.mp4 is not None:
        _write_films(replay, options)
    if options.terminal:
        from hackmatrix.ui.terminal.screen_text import show_replay

        show_replay(replay, 1 / options.speed, options.start)
    for path in filter(None, (options.svg, options.gif, options.mp4)):
        print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


def _write_svg(replay: "Replay", path: Path, step: int | None) -> None:
    from itertools import islice

    from hackmatrix.core.files import write_atomically
    from hackmatrix.game.drawing import draw

    state = next(islice(replay.states(), len(replay.actions) if step is None else step, None))
    write_atomically(path, draw(state).encode())


def _write_films(replay: "Replay", options: ReplayOptions) -> None:
    if options.mp4 is not None:
        need("imageio_ffmpeg")  # its extra brings Pillow too
    from hackmatrix.ui.film.frames import frames, write_gif, write_mp4

    pictures = frames(replay, options.width, options.start)
    if options.gif is not None:
        write_gif(options.gif, pictures, 1 / options.speed)
    if options.mp4 is not None:
        write_mp4(options.mp4, pictures, 1 / options.speed)
