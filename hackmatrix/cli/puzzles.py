"""`hackmatrix puzzles`: positions in which one action alone keeps the chance of winning."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from hackmatrix.cli.arguments import parse
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import check_writable, write_atomically
from hackmatrix.core.options import check, option


@dataclass(frozen=True)
class PuzzleOptions:
    """The command's options."""

    out: Path | None = option(None, "file to write; also -o")
    games: int = option(1000, "games to search", at_least=1)
    most: int | None = option(None, "stop after this many puzzles", at_least=1)
    seed: int = option(0, "stream of the games", at_least=0, at_most=2**31 - 1)

    def __post_init__(self) -> None:
        check(self)


def main(argv: list[str]) -> int:
    """Writes the puzzles, and says how many there are."""
    options = parse(
        PuzzleOptions,
        ["--out" if argument == "-o" else argument for argument in argv],
        command="hackmatrix puzzles",
        purpose="Finds puzzles in games of the packaged agent: positions in which only one action "
        "keeps the chance of winning.",
        example="  hackmatrix puzzles --games 100 -o puzzles.json\n"
        "      takes a few seconds a game; Ctrl+C keeps what was found",
    )
    if options.out is None:
        raise UserError("give -o FILE")
    check_writable(options.out, f"-o {options.out}")
    from hackmatrix.agents.roster.judge import judge
    from hackmatrix.game.engine.replay import GameId
    from hackmatrix.ui.session.puzzles import FORMAT, Puzzle, mine

    mined_puzzles = list[Puzzle]()
    try:
        for episode in range(options.games):
            mined_puzzles += mine(judge(), GameId(options.seed, episode))
            if sys.stderr.isatty():
                print(
                    f"\r{episode + 1} games, {len(mined_puzzles)} puzzles", end="", file=sys.stderr
                )
            if options.most is not None and len(mined_puzzles) >= options.most:
                break
    except KeyboardInterrupt:
        pass
    puzzles = [puzzle.as_json() for puzzle in mined_puzzles[: options.most]]
    lines = ",\n".join(json.dumps(puzzle, separators=(",", ":")) for puzzle in puzzles)
    content = f'{{"format": "{FORMAT}", "puzzles": [\n{lines}\n]}}\n'
    write_atomically(options.out, content.encode())
    print(f"{options.out}: {len(puzzles)} puzzles of {episode + 1} games")
    return 0
