"""The server answers its own page with what the runs hold."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from monitored_runs import append, row_of, save_agent, save_player, write_run
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from hackmatrix.ui.monitor.runs import Runs
from hackmatrix.ui.monitor.server import make_app
from hackmatrix.ui.web.server import files_in

RETURN = "train/mean_episode_return"
Players = tuple[TestClient, dict[int, dict[str, str]]]  # checkpoints by update


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed in (0, 1):
        rows = [row_of(10 * i, mean_episode_return=float(i + seed)) for i in range(1, 6)]
        write_run(tmp_path / f"best-{seed}", rows, seed=seed)
    append(tmp_path / "best-1", row_of(50, approx_kl=0.09, alarms=["kl_too_high"]))
    append(tmp_path / "best-1", row_of(50, **{"eval/mean_return": 8.0}))
    save_agent(tmp_path / "best-1", 50)
    return tmp_path


@pytest.fixture
def runs(folder: Path) -> Runs:
    runs = Runs([str(folder / "best-0"), str(folder / "best-1")], folder)
    runs.read_all()
    return runs


def asked(runs: Runs) -> TestClient:
    return TestClient(make_app(runs, 5.0), base_url="http://localhost:8643")


@pytest.fixture
def client(runs: Runs) -> Iterator[TestClient]:
    with asked(runs) as it:
        yield it


def curves(client: TestClient, **query: Any) -> Any:
    return client.get("/curves", params=query).json()["curves"]


def test_the_overview_tells_runs_metrics_alarms_and_checkpoints(
    client: TestClient, folder: Path
) -> None:
    told = client.get("/overview").json()
    assert [(g["name"], len(g["runs"])) for g in told["groups"]] == [("best-*", 2)]
    groups = {g["title"]: [m["label"] for m in g["metrics"]] for g in told["metrics"]}
    assert groups == {"Learning": ["return", "KL"], "Evaluation": ["return"]}
    _, kl = told["metrics"][0]["metrics"]
    assert kl["health"] == ["critical"]
    assert [limit["above"] for limit in kl["limits"]] == [0.06, 0.08]
    (alarm,) = told["alarms"]
    assert (alarm["run"], alarm["metric"]) == ("best-1", "train/approx_kl")
    assert alarm["at"]["steps"] == 50_000
    (saved,) = told["checkpoints"]
    assert saved["score"] == 8
    assert saved["command"] == f"hackmatrix watch {folder / 'best-1' / 'params_50.npz'}"


def test_a_group_has_a_line_for_each_seed_and_their_mean(client: TestClient) -> None:
    (group,) = curves(client, metric=RETURN)[RETURN]
    assert [line["y"] for line in group["lines"]] == [[1, 2, 3, 4, 5], [2, 3, 4, 5, 6]]
    assert group["mean"]["y"] == [1.5, 2.5, 3.5, 4.5, 5.5]
    assert group["mean"]["x"] == [10_000, 20_000, 30_000, 40_000, 50_000]
    assert group["range"] == [1, 6]
    assert curves(client, metric=["no/such"])["no/such"] == [None]


def test_curves_are_of_the_part_and_the_axis_that_are_wanted(client: TestClient) -> None:
    (group,) = curves(client, metric=RETURN, axis="updates", low=22, high=28)[RETURN]
    assert group["lines"][0]["x"] == [20, 30]


def test_the_newest_of_the_rows_that_are_not_finite_have_marks(
    client: TestClient, runs: Runs, folder: Path
) -> None:
    for first, last, shown in ((60, 60, 60), (70, 350, 160)):
        broken = range(first, last + 10, 10)
        append(folder / "best-0", *(row_of(u, mean_episode_return=None) for u in broken))
        runs.read_all()
        (group,) = curves(client, metric=RETURN)[RETURN]
        assert group["broken"] == [1000 * update for update in range(shown, last + 10, 10)]
        assert len(group["lines"][0]["y"]) == 5


def test_the_newest_rows_are_never_clipped(tmp_path: Path) -> None:
    values = [i / 100 for i in range(100)]
    values[-4:-2] = [1e4, 1e4]  # a spike, which smoothing leads into the rows after it
    rows = [row_of(10 * i, mean_episode_return=value) for i, value in enumerate(values, 1)]
    runs = Runs([str(write_run(tmp_path / "run", rows))], tmp_path)
    runs.read_all()
    with asked(runs) as client:
        for smoothing in (1, 10):
            (group,) = curves(client, metric=RETURN, rows=smoothing)[RETURN]
            low, high = group["range"]
            drawn = group["lines"][0]["y"]
            assert low <= min(drawn[-2:])
            assert max(drawn[-2:]) <= high * 1.001
            assert smoothing > 1 or high < 10


def test_settings_that_differ_are_told(tmp_path: Path) -> None:
    for name, more in (("a", {"lr": 0.1 * 3}), ("b", {"lr": 0.1, "network": "cnn"})):
        write_run(tmp_path / name, [row_of(10)], gamma=0.9, seed=len(name), **more)
    runs = Runs([str(tmp_path / "a"), str(tmp_path / "b")], tmp_path)
    runs.read_all()
    with asked(runs) as client:
        told = client.get("/overview").json()["settings"]
    assert told == {"names": ["lr", "network"], "values": [["0.3", ""], ["0.1", "cnn"]]}


def test_numbers_of_any_size_are_answered(client: TestClient, runs: Runs, folder: Path) -> None:
    for name in ("best-0", "best-1"):
        append(folder / name, row_of(60, mean_episode_return=1e308, steps_per_second=5e-324))
        append(folder / name, row_of(2**52, mean_episode_return=-1e308))
    runs.read_all()
    told = {m["name"]: m for g in client.get("/overview").json()["metrics"] for m in g["metrics"]}
    assert told[RETURN]["health"] == ["critical"]
    for axis in ("steps", "updates", "hours"):
        (group,) = curves(client, metric=RETURN, axis=axis, rows=5)[RETURN]
        assert len(group["lines"][0]["y"]) == 5
        assert len(group["broken"]) == 2


def test_the_version_changes_when_rows_come(client: TestClient, runs: Runs, folder: Path) -> None:
    version = client.get("/overview").json()["version"]
    runs.read()
    assert client.get("/overview").json()["version"] == version
    append(folder / "best-0", row_of(60))
    runs.read()
    assert client.get("/overview").json()["version"] != version


@pytest.mark.parametrize(
    "query",
    [
        "",
        "metric=",
        "metric=train%2Fmean_episode_return&axis=x&rows=nan&low=a&high=inf&pixels=1e99",
        "&".join(["metric=train%2Fentropy"] * 2000),
        "metric=train%2Fmean_episode_return&low=1e300&high=-1e300&rows=-5&pixels=-1",
    ],
)
def test_odd_questions_are_answered(client: TestClient, query: str) -> None:
    assert client.get(f"/curves?{query}").status_code == 200


def test_only_files_of_the_page_are_served_and_only_to_this_machine(client: TestClient) -> None:
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "--siphon" in client.get("/look.css").text
    assert "Leon Sorokin" in client.get("/uplot-license.txt").text
    for path in ("/session.py", "/%2e%2e/server.py", "/main.js"):
        assert client.get(path).status_code == 404
    for path in ("/", "/overview", "/curves"):
        assert client.get(path, headers={"host": "evil.example"}).status_code == 403


def test_the_page_names_every_module_so_that_all_load_at_once(client: TestClient) -> None:
    page = client.get("/").text
    modules = {name for name in files_in("monitor") if name.endswith(".js")}
    for name in modules - {"monitor.js", "grown.js"}:
        assert f'rel="modulepreload" href="{name}"' in page


def test_other_machines_need_the_token(runs: Runs) -> None:
    app = make_app(runs, 5.0, token="secret", host="0.0.0.0")
    with TestClient(app, base_url="http://here:8643") as client:
        assert client.get("/overview").status_code == 403
        assert client.get("/?token=secret").status_code == 200
        assert client.get("/overview").status_code == 200


def test_the_folder_of_a_search_shows_its_trials_and_its_plots(tmp_path: Path) -> None:
    folder = tmp_path / "search"
    write_run(folder / "trials" / "tpe-0", [row_of(10)])
    runs = Runs([str(folder)], tmp_path)
    with asked(runs) as client:
        assert client.get("/overview").json()["pictures"] == []
        (folder / "history.svg").write_text("<svg/>")
        told = client.get("/overview").json()
        (picture,) = told["pictures"]
        assert [run["name"] for group in told["groups"] for run in group["runs"]] == ["tpe-0"]
        assert picture["name"] == "history"
        answer = client.get(picture["address"])
        assert (answer.text, answer.headers["content-type"]) == ("<svg/>", "image/svg+xml")
        assert client.get("/picture/..%2Fhistory").status_code == 404
        secret = tmp_path / "secret"
        secret.write_text("secret")
        (folder / "x.svg").symlink_to(secret)
        os.mkfifo(folder / "y.svg")
        assert client.get("/overview").json()["pictures"] == told["pictures"]
        for name in ("x", "y"):
            assert client.get(f"/picture/{name}").status_code == 404


def test_only_agents_of_hackmatrix_are_offered_to_be_watched(
    client: TestClient, folder: Path
) -> None:
    save_agent(folder / "best-0", 50, environment="CartPole-v1")
    told = client.get("/overview").json()
    commands = {each["run"]: each["command"] for each in told["checkpoints"]}
    assert commands.keys() == {"best-0", "best-1"}
    assert commands["best-0"] is None
    assert commands["best-1"].startswith("hackmatrix watch ")


def test_a_search_is_named_like_a_run_and_its_plots_by_folder_where_there_are_several(
    tmp_path: Path,
) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name / "trials" / "0", [row_of(10)])
        (tmp_path / name / "history.svg").write_text("<svg/>")
    assert list(Runs(["a", "b"], tmp_path).pictures()) == ["a history", "b history"]
    runs = Runs(["a"], tmp_path)
    assert [run.path for run in runs.runs] == [tmp_path / "a" / "trials" / "0"]
    assert list(runs.pictures()) == ["history"]


@pytest.fixture
def players(tmp_path: Path) -> Iterator[Players]:
    """A run with checkpoints 100 to 500, and how they are told by update."""
    run = write_run(tmp_path / "run", [row_of(10)])
    for update in range(100, 600, 100):
        save_player(run, update, noise=1.0)
    runs = Runs([str(run)], tmp_path)
    with asked(runs) as client:
        told = client.get("/overview").json()["checkpoints"]
        yield client, {each["update"]: each for each in told}


def test_a_checkpoint_has_a_page_of_its_own(players: Players) -> None:
    client, told = players
    page = told[300]["page"]
    assert "HackMatrix" in client.get(page).text
    assert client.get(f"{page}main.js").headers["content-type"].startswith("text/javascript")
    own = {"origin": "http://localhost:8643", "host": "localhost:8643"}
    with client.websocket_connect(f"{page}session", headers=own) as tab:
        tab.send_json({"do": "hello"})
        assert tab.receive_json()["about"]["agents"][0] == "params_300"
    foreign = own | {"origin": "http://evil.example"}
    for address, headers in ((page, foreign), ("played/0123456789abcdef/", own)):
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect(f"{address}session", headers=headers),
        ):
            pass
    assert client.get("played/0123456789abcdef/").status_code == 404
    assert client.get(page, headers={"host": "evil.example"}).status_code == 403


def test_what_is_no_agent_is_refused_and_holds_nothing_up(players: Players, tmp_path: Path) -> None:
    client, told = players
    pipe, damaged = tmp_path / "run" / "params_100.npz", tmp_path / "run" / "params_200.npz"
    assert client.get(told[200]["page"]).status_code == 200
    damaged.write_bytes(b"PK damaged")
    facts = tmp_path / "run" / "params_300.json"
    for path in (pipe, facts):
        path.unlink()
        os.mkfifo(path)
    assert len(client.get("/overview").json()["checkpoints"]) == 5
    for update, words in ((100, "is no file of params"), (200, "damaged"), (300, "is no file")):
        answer = client.get(told[update]["page"])
        assert answer.status_code == 404
        assert words in answer.text


def test_four_checkpoints_play_the_same_game(players: Players) -> None:
    client, told = players
    assert len({each["grown"] for each in told.values()}) == 1
    address = told[100]["grown"].replace("grown.html?run=", "grown/")
    answer = client.get(address, params={"seed": "7"}).json()
    assert (answer["run"], answer["seed"]) == ("run", "7")
    games = answer["games"]
    assert [game["update"] for game in games] == [100, 200, 400, 500]
    assert [game["page"] for game in games] == [told[game["update"]]["page"] for game in games]
    ends = [client.get(f"{address}/{game['update']}/{game['steps']}.svg?seed=7") for game in games]
    assert all("died" in end.text.lower() for end in ends)
    first = {client.get(f"{address}/{game['update']}/0.svg?seed=7").text for game in games}
    assert len(first) == 1
    assert first != {client.get(f"{address}/100/0.svg").text}  # of another game
    for wrong in ("300/0.svg", "100/5000.svg"):
        assert client.get(f"{address}/{wrong}?seed=7").status_code == 404
    for wrong in (f"{address}?seed=x", "grown/0123456789abcdef"):
        assert client.get(wrong).status_code == 404
