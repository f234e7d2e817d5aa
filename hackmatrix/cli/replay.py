"""`hackmatrix replay`: a saved game as a film, a picture, or text; a run's agents side by side."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hackmatrix.cli.arguments import parse
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import check_writable
from hackmatrix.core.imports import need
from hackmatrix.core.options import check, option

if TYPE_CHECKING:
    from hackmatrix.game.engine.replay import Replay


@dataclass(frozen=True)
class ReplayOptions:
    """The command's options."""

    file: Path = option(
        dataclasses.MISSING,
        "a saved game (.json) of the page; or a run's folder: four of its checkpoints play the "
        "same game side by side (--gif, --mp4)",
    )
    gif: Path | None = option(None, "write an animation")
    mp4: Path | None = option(None, "write a film (needs the extra `mp4`)")
    svg: Path | None = option(None, "write a picture of one step")
    terminal: bool = option(False, "show it in the terminal")
    step: int | None = option(None, "step that --svg shows; default the last", at_least=0)
    start: int = option(0, "first step of --gif, --mp4 and --terminal", at_least=0)
    width: int | None = option(
        None,
        "width of films in pixels, an even number; default 600, for a run 1200",
        at_least=64,
        at_most=2_160,
    )
    seed: str | None = option(None, "game that a run's checkpoints play, such as 7; default e0.0")
    speed: float = option(3.0, "steps per second", at_least=0.1, at_most=50)

    def __post_init__(self) -> None:
        check(self)
        if self.width is not None and self.width % 2:
            raise UserError(f"--width must be an even number, got {self.width}")
        if not (self.gif or self.mp4 or self.svg or self.terminal):
            raise UserError("give --gif FILE, --mp4 FILE, --svg FILE or --terminal")
        if self.step is not None and self.svg is None:
            raise UserError("--step goes with --svg")
        if self.file.is_dir() and (self.svg or self.terminal):
            raise UserError(f"{self.file}: a run's folder goes with --gif and --mp4 alone")
        if self.seed is not None and not self.file.is_dir():
            raise UserError("--seed goes with a run's folder; a saved game has its own")
        for flag in ("gif", "mp4", "svg"):
            if (path := getattr(self, flag)) is not None:
                check_writable(path, f"--{flag} {path}")


def main(argv: list[str]) -> int:
    """Writes what is asked for, and says where."""
    options = parse(
        ReplayOptions,
        argv,
        command="hackmatrix replay",
        purpose="Shows a saved game, or writes it as an animation, a film or a picture.",
        example="  hackmatrix replay game.json --gif game.gif\n"
        "      writes an animation of 600 pixels, 3 steps a second\n"
        "  hackmatrix replay checkpoints/my-run --gif grown.gif\n"
        "      four checkpoints of a run in the same game, side by side",
    )
    if options.mp4 is not None:
        need("imageio_ffmpeg")  # its extra brings Pillow too
    if options.gif is not None:
        need("PIL")
    replays = _replays(options)
    last = max(len(replay.actions) for replay in replays.values())
    for name, step in (("step", options.step), ("start", options.start)):
        if step is not None and step > last:
            raise UserError(
                f"--{name} must be at most {last}, the last step of this game, got {step}"
            )
    replay = next(iter(replays.values()))
    if options.svg is not None:
        _write_svg(replay, options.svg, options.step)
    if options.gif is not None or options.mp4 is not None:
        _write_films(replays, options)
    if options.terminal:
        from hackmatrix.ui.terminal.screen_text import show_replay

        show_replay(replay, 1 / options.speed, options.start)
    for path in filter(None, (options.svg, options.gif, options.mp4)):
        print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


def _replays(options: ReplayOptions) -> "dict[str, Replay]":
    """The saved game, or those that a run's checkpoints play, by name."""
    from hackmatrix.game.engine.replay import GameId, load_replay

    if not options.file.is_dir():
        return {options.file.stem: load_replay(options.file)}
    from hackmatrix.ui.session.growth import checkpoints, play_game

    game, files = GameId.read(options.seed or "e0.0"), checkpoints(options.file)
    return {f"update {update}": play_game(path, game) for update, path in files.items()}


def _write_svg(replay: "Replay", path: Path, step: int | None) -> None:
    from itertools import islice

    from hackmatrix.core.files import write_atomically
    from hackmatrix.game.drawing import draw

    state = next(islice(replay.states(), len(replay.actions) if step is None else step, None))
    write_atomically(path, draw(state).encode())


def _write_films(replays: "dict[str, Replay]", options: ReplayOptions) -> None:
    from hackmatrix.ui.film.frames import frames, frames_beside, write_gif, write_mp4

    if len(replays) > 1:
        pictures = frames_beside(replays, options.width or 1200, options.start)
    else:
        pictures = frames(next(iter(replays.values())), options.width or 600, options.start)
    if options.gif is not None:
        write_gif(options.gif, pictures, 1 / options.speed)
    if options.mp4 is not None:
        write_mp4(options.mp4, pictures, 1 / options.speed)
