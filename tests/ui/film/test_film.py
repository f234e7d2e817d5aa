"""Replays as films and pictures, drawn like the page."""

import json
import re
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from monitored_runs import save_player
from paths import DOCS
from PIL import Image

from hackmatrix.agents.roster.names import resolve
from hackmatrix.agents.roster.session_agents import cast
from hackmatrix.cli.main import main
from hackmatrix.game.drawing.marks import Mark, SvgGroup
from hackmatrix.game.drawing.picture import HEIGHT, WIDTH, scene
from hackmatrix.game.drawing.pixels import raster
from hackmatrix.game.drawing.theme import COLOURS
from hackmatrix.game.drawing.visible_state import view
from hackmatrix.game.engine.replay import GameId, Replay, load_replay
from hackmatrix.ui.film.frames import frames
from hackmatrix.ui.session.growth import checkpoints, play_game
from hackmatrix.ui.session.session import Session

pytestmark = pytest.mark.thorough


@pytest.fixture
def game(tmp_path: Path) -> Path:
    session = Session(GameId(21), cast(resolve("exit")))
    session.handle({"do": "agent", "steps": 6})
    path = tmp_path / "game.json"
    path.write_text(json.dumps(session.handle({"do": "save"})["replay"]))
    return path


# Other tests of this process may use JAX; the child runs another program at once.
@pytest.mark.filterwarnings("ignore:os.fork")
def test_all_formats_are_written(game: Path, capsys: pytest.CaptureFixture[str]) -> None:
    films = {name: game.with_suffix(f".{name}") for name in ("gif", "mp4", "svg")}
    flags = [word for name, path in films.items() for word in (f"--{name}", str(path))]
    assert main(["replay", str(game), *flags, "--width", "300"]) == 0
    assert capsys.readouterr().out.count(" bytes") == 3
    with Image.open(films["gif"]) as film:
        assert (film.n_frames, film.size) == (7, (300, 480))
        assert film.info["loop"] == 0
    assert films["gif"].stat().st_size < 100_000
    assert films["mp4"].read_bytes()[4:8] == b"ftyp"
    assert films["svg"].read_text().startswith("<svg")
    assert {path.suffix for path in game.parent.iterdir()} == {".json", ".gif", ".mp4", ".svg"}


def test_the_film_of_the_readme_is_the_documented_one() -> None:
    """That its command makes a film is a test of the documents."""
    (words,) = re.findall(
        r"^hackmatrix replay docs/raw_won.json --gif docs/won.gif (.*)$",
        (DOCS / "page.md").read_text(),
        re.MULTILINE,
    )
    width, start = (int(re.findall(rf"--{name} (\d+)", words)[0]) for name in ("width", "start"))
    *before, last = load_replay(DOCS / "raw_won.json").states()
    assert last.over == "won"
    with Image.open(DOCS / "won.gif") as kept:
        assert (kept.n_frames, kept.size[0]) == (len(before) + 1 - start, width)
    assert (DOCS / "won.gif").stat().st_size < 500_000


def test_the_svg_is_of_the_step(game: Path) -> None:
    svg = game.with_suffix(".svg")
    assert main(["replay", str(game), "--svg", str(svg), "--step", "0"]) == 0
    assert "turn 0" in svg.read_text()
    assert main(["replay", str(game), "--svg", str(svg), "--step", "7"]) == 2
    assert "turn 0" in svg.read_text()


def test_a_film_begins_at_the_step(game: Path) -> None:
    gif = game.with_suffix(".gif")
    assert main(["replay", str(game), "--gif", str(gif), "--width", "64", "--start", "4"]) == 0
    with Image.open(gif) as film:
        assert film.n_frames == 3
        for i, picture in enumerate(frames(load_replay(game), 64, start=4)):
            film.seek(i)
            difference = np.asarray(film.convert("RGB"), float) - np.asarray(picture, float)
            assert np.abs(difference).mean() < 3  # of 255: there is one palette for all
    assert main(["replay", str(game), "--gif", str(gif), "--start", "7"]) == 2


def test_a_run_is_a_film_of_its_checkpoints_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, gif = tmp_path / "run", tmp_path / "grown.gif"
    run.mkdir()
    save_player(run, 10, noise=1.0)
    words = ["replay", str(run), "--gif", str(gif), "--width", "648", "--seed", "3"]
    assert main(words) == 2
    assert "two checkpoints or more" in capsys.readouterr().err
    for update in (20, 30, 40, 50):
        save_player(run, update, noise=1.0)
    found = checkpoints(run)
    assert list(found) == [10, 20, 40, 50]
    games = [play_game(path, GameId(3)) for path in found.values()]
    lengths = [len(game.actions) for game in games]
    assert min(lengths) < max(lengths) - 2
    start = max(lengths) - 2  # a shorter game stays at its end
    assert main([*words, "--start", str(start)]) == 0
    with Image.open(gif) as film:
        assert film.n_frames == 3
        film.seek(1)
        shown = np.asarray(film.convert("RGB"), float)
    for i, game in enumerate(games):
        *_, state = islice(game.states(), start + 2)
        alone = np.asarray(raster(scene(view(state)), (WIDTH, HEIGHT), 162), float)[:250]
        part = shown[15:265, 162 * i : 162 * (i + 1)]  # under its name
        assert np.abs(part - alone).mean() < 3
    assert main([*words, "--terminal"]) == 2
    assert main(["replay", str(run / "no"), "--gif", str(gif), "--seed", "3"]) == 2


def test_in_a_pipe_every_step_is_text(game: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(game), "--terminal"]) == 0
    assert capsys.readouterr().out.count("step ") == 7
    assert main(["replay", str(game), "--terminal", "--start", "5"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "step " in line] == [
        "step 5",
        "step 6",
    ]


def test_shapes_have_their_colours_and_places() -> None:
    image = raster([SvgGroup("", 0, 0, (Mark("slot", 50, 0, 50, "exit"),))], (100, 100), 200)
    pixels = np.asarray(image)
    assert image.size == (200, 200)
    assert tuple(pixels[50, 150]) == tuple(bytes.fromhex(COLOURS["exit"][1:]))
    assert tuple(pixels[150, 50]) == tuple(bytes.fromhex(COLOURS["background"][1:]))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no replay"),
        ("[]", "not a replay"),
        ("[" * 100_000, "no replay"),
        (json.dumps({"format": "hackmatrix-replay", "version": 2}), "version 2"),
        (json.dumps(Replay(GameId(7), (27,)).as_json()), "number 0 (27) is not valid"),
    ],
)
def test_what_is_no_replay_is_refused(
    content: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    assert main(["replay", str(path), "--gif", str(tmp_path / "x.gif")]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1
    assert not (tmp_path / "x.gif").exists()
