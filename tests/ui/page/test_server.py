"""The server answers its own page and nobody else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from hackmatrix.cli.main import main
from hackmatrix.core.errors import UserError
from hackmatrix.game.engine.replay import GameId
from hackmatrix.ui.page.server import MOST_SESSIONS, make_app, page_files
from hackmatrix.ui.session.session import Session
from hackmatrix.ui.web.server import bind

OWN = {"host": "localhost:8642", "origin": "http://localhost:8642"}


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(make_app(lambda: Session(GameId(7))), base_url="http://localhost:8642") as it:
        yield it


def connected(client: TestClient, headers: dict[str, str] = OWN) -> Any:
    return client.websocket_connect("/session", headers=headers)


def test_the_page_loads_nothing_from_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_look_is_served_with_what_programs_do(client: TestClient) -> None:
    look = client.get("/look.json").json()
    assert look["shapes"].keys() >= {"player", "virus"}
    assert len(look["actions"]) == 28
    assert look["programs"][0]["does"]


@pytest.mark.parametrize(
    "path", ["/nothing.js", "/../server.py", "/%2e%2e/server.py", "/static/..%2fserver.py"]
)
def test_no_other_file_is_read(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("name", ["localhost:9", "127.0.0.1:8642", "[::1]:8642", "LOCALHOST"])
def test_every_name_of_this_machine_is_answered(client: TestClient, name: str) -> None:
    assert client.get("/", headers={"host": name}).status_code == 200


@pytest.mark.parametrize("name", ["evil.example", "localhost.evil.example:8642", "127.0.0.2", "["])
def test_a_foreign_host_is_refused(client: TestClient, name: str) -> None:
    assert client.get("/", headers={"host": name}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost:8642", "origin": "http://evil.example"},
        {"host": "localhost:8642", "origin": "http://localhost:1"},
        {"host": "localhost:8642", "origin": "null"},
        {"host": "evil.example", "origin": "http://evil.example"},
        {"host": "localhost:8642"},
    ],
)
def test_a_foreign_page_may_not_connect(client: TestClient, headers: dict[str, str]) -> None:
    with pytest.raises(WebSocketDisconnect), connected(client, headers):
        pass


def test_a_tab_plays_and_what_it_sends_is_answered_by_its_number(client: TestClient) -> None:
    with connected(client) as tab:
        tab.send_json({"do": "hello", "id": 1})
        hello = tab.receive_json()
        assert (hello["id"], hello["game"]) == (1, "7")
        for text in ("", "no json", "[1]", "[" * 100_000, json.dumps({"do": "act", "id": "x"})):
            tab.send_text(text)
            assert list(tab.receive_json()) == ["error"]
        tab.send_bytes(b"{}")
        assert list(tab.receive_json()) == ["error"]
        tab.send_json({"do": "save", "id": 2})
        assert tab.receive_json()["replay"]["seed"] == "7"


def test_tabs_are_independent_and_not_too_many(client: TestClient) -> None:
    with ExitStack() as opened:
        tabs = [opened.enter_context(connected(client)) for _ in range(MOST_SESSIONS)]
        with connected(client) as refused, pytest.raises(WebSocketDisconnect) as told:
            refused.receive_json()
        assert (told.value.code, told.value.reason) == (
            1013,
            "64 tabs are open already: close one of them",
        )
        tabs[0].send_json({"do": "new", "seed": "8"})
        assert tabs[0].receive_json()["game"] == "8"
        tabs[1].send_json({"do": "hello"})
        assert tabs[1].receive_json()["game"] == "7"
    with connected(client) as tab:
        tab.send_json({"do": "hello"})
        assert tab.receive_json()["game"] == "7"


def test_other_machines_need_the_token() -> None:
    app = make_app(lambda: Session(GameId(7)), token="secret", host="192.0.2.1")
    headers = {"host": "box.example", "origin": "http://box.example"}
    with TestClient(app, base_url="http://box.example") as client:
        assert client.get("/").status_code == 403
        assert client.get("/?token=wrong").status_code == 403
        with pytest.raises(WebSocketDisconnect), connected(client, headers):
            pass
        assert client.get("/?token=secret").status_code == 200
        assert client.get("/look.json").status_code == 200
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        with connected(client, headers | {"cookie": cookie}) as tab:
            tab.send_json({"do": "hello"})
            assert tab.receive_json()["game"] == "7"


def test_a_port_in_use_is_said_in_one_line() -> None:
    with bind("127.0.0.1", 0) as taken, pytest.raises(UserError, match="choose another --port"):
        bind("127.0.0.1", taken.getsockname()[1])


def test_playing_loads_neither_jax_nor_numpy() -> None:
    code = """
import sys
from hackmatrix.ui.page.server import make_app
from hackmatrix.ui.session.session import Session
make_app(Session)
Session().handle({"do": "hello"})
print({"jax", "numpy", "PIL", "rich"} & set(sys.modules))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("set()\n", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seed", "x"], "a seed is a number"),
        (["--port", "70000"], "--port: must be at least 0"),
        (["--host", "0.0.0.0"], "give a --token too"),
        (["--prot", "1"], "did you mean --port?"),
    ],
)
def test_wrong_arguments_are_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", *arguments]) == 2
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1


def test_the_page_names_every_module_so_that_all_load_at_once(client: TestClient) -> None:
    page = client.get("/").text
    modules = {name for name in page_files() if name.endswith(".js")} - {"main.js"}
    assert {name for name in modules if f'rel="modulepreload" href="{name}"' in page} == modules


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [("br;q=1.0, GZIP;q=0.5", "gzip"), ("*", "gzip"), ("gzip; q=0.0, *", None), ("", None)],
)
def test_files_come_compressed_to_those_who_take_it(
    client: TestClient, accepted: str, coding: str | None
) -> None:
    for name, content in page_files().items():
        answer = client.get(f"/{name}", headers={"accept-encoding": accepted})
        assert answer.headers.get("content-encoding") == coding
        assert answer.headers["vary"].lower() == "accept-encoding"
        assert answer.content == content
        sent = int(answer.headers["content-length"])
        assert sent == len(content) if coding is None else sent < len(content)


def test_files_are_compressed_once(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compressor: what is given was compressed when the server began."""
    monkeypatch.setattr("gzip.compress", None)
    monkeypatch.setattr("zlib.compressobj", None)
    assert client.get("/main.js").headers["content-encoding"] == "gzip"
