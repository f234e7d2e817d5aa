"""The page as static files, which any web server gives: the session runs in the browser."""

import glob
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import zipfile
from html import escape
from pathlib import Path
from typing import Any

from hackmatrix.agents.roster.judge import read_fit
from hackmatrix.agents.roster.names import AgentName
from hackmatrix.agents.roster.position_policies import network_of
from hackmatrix.agents.shipped import PARAMS
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import PARTIAL
from hackmatrix.ui.page.in_browser import PAGES, SETTINGS, WEIGHTS, open_session
from hackmatrix.ui.page.server import page_files
from hackmatrix.ui.session.puzzles import PACKAGED

_PYODIDE = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "pyodide-lock.json",
    "python_stdlib.zip",
    "package.json",  # names its licence and its source
)
_ROOMS = (  # of which a session is made
    "game/rules",
    "game/engine",
    "game/foresight",
    "game/drawing",
    "agents/scripted",
    "agents/shipped",
    "agents/roster",
    "ui/session",
    "ui/page",
)
_PACKAGES = ("core", "game", "agents", "ui")
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; manifest-src 'self'"
)
_OFFLINE = "offline.js"
_MANIFEST = '<link rel="manifest" href="manifest.webmanifest">'
_PICTURE = "preview.png"  # `scripts/page_pictures.py` makes it
_OF_THE_PICTURE = {
    "og:image:width": "1200",
    "og:image:height": "630",
    "og:image:alt": "A game: the board with the player, enemies and programs",
    "twitter:card": "summary_large_image",
}
_PUBLIC = re.compile(
    r"https?://(?!(?:(?:[\w-]+\.)*localhost|127\.[\d.]+|0\.0\.0\.0|\[::1?])(?![\w.-]))"
    r"(?:\[[\da-f:.]+]|[\w.-]+)(?::\d+)?(?:/[^\s?#]*(?<!\.html))?",
    re.I,
)
_WAKING = "This page needs JavaScript and a web server: it does not open as a file."
_LINKS = {  # after which mark, and the link
    "play": ('<nav aria-label="Game">', '<a href="watch.html">Watch the agent</a>'),
    "watch": ('<nav aria-label="Games">', '<a href="index.html">Play yourself</a>'),
}


def export(folder: Path, agent: AgentName, pyodide: Path, public_url: str = "") -> tuple[int, int]:
    """Writes the page: `index.html` to play, `watch.html` with an agent at the controls.

    Beside each file lies the same compressed, `.gz`, for web servers that look for it. The folder
    gets its name when it is whole: a kill leaves nothing in it.

    Args:
        folder: a new or an empty one.
        agent: a built-in player or an MLP.
        pyodide: the folder of the npm package.
        public_url: the address that the folder will have, if it is known: messengers then show a
            picture beside a link to it, and the page shares such links wherever it is opened.

    Returns:
        The bytes of all its files, as they are and compressed.

    Raises:
        UserError: the folder holds something, Pyodide is not there, the address is not one of a
            folder that others reach, or the agent's network is another than an MLP, or it searches.
    """
    if public_url:
        public_url = _check_url(public_url)
    missing = [file for file in _PYODIDE if not (pyodide / file).is_file()]
    if missing:
        raise UserError(
            f"{pyodide}: {missing[0]} is not there; `npm install --no-save pyodide` puts Pyodide "
            "into node_modules/pyodide, --pyodide names the folder of its npm package"
        )
    settings, weights = _agent(agent)
    whole = folder.resolve()
    there = list(whole.iterdir()) if whole.is_dir() else []
    is_free = all(path.name.startswith(PARTIAL) for path in there)
    if whole.exists() and not (whole.is_dir() and is_free):
        raise UserError(f"{folder}: holds something already: name a new or an empty folder")
    for abandoned in (*there, *whole.parent.glob(f"{PARTIAL}{glob.escape(whole.name)}-*")):
        shutil.rmtree(abandoned, ignore_errors=True)
    partial = (whole.parent if _is_replaceable(whole) else whole) / (
        f"{PARTIAL}{whole.name}-{os.getpid()}"
    )
    try:
        size = _write(partial, _files(settings, weights, public_url), pyodide)
        if partial.parent == whole:
            for path in sorted(partial.iterdir(), key=lambda path: path.name == "index.html"):
                path.rename(whole / path.name)
        else:
            if whole.exists():
                whole.rmdir()
            partial.rename(whole)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return size


def _check_url(public_url: str) -> str:
    """The address with a slash at its end, if others can open it."""
    if not _PUBLIC.fullmatch(public_url):
        raise UserError(
            "--public-url must be the address of a folder, as https://NAME/play/, that others can "
            f"open, got {public_url!r:.200}"
        )
    return f"{public_url.rstrip('/')}/"


def _is_replaceable(folder: Path) -> bool:
    """Whether another folder can get this name: not if it is mounted or a shell stands in it."""
    if not folder.exists():
        return True
    stands = folder.samefile(Path.cwd())
    return not (stands or folder.is_mount()) and os.access(folder.parent, os.W_OK)


def _files(settings: dict[str, Any], weights: bytes, public_url: str) -> dict[str, bytes]:
    """The files of the page but for Pyodide's, by name."""
    files = page_files() | page_files("exported")
    files["python.zip"] = _python(settings, weights)
    html = files.pop("index.html").decode()
    words = json.loads(files["manifest.webmanifest"])["description"]
    for page in PAGES:
        files[f"{page}.json"] = open_session(page, settings, weights)('{"do":"hello"}').encode()
        name = "index.html" if page == "play" else f"{page}.html"
        files[name] = _html(html, page, _about(words, name, public_url)).encode()
    files[_OFFLINE] = _offline(files)
    return files


def _write(folder: Path, files: dict[str, bytes], pyodide: Path) -> tuple[int, int]:
    """Writes a new folder; returns the bytes of all files, as they are and compressed."""
    (folder / "pyodide").mkdir(parents=True)
    for file in _PYODIDE:
        shutil.copyfile(pyodide / file, folder / "pyodide" / file)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    size = packed_size = 0
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        content = path.read_bytes()
        packed = gzip.compress(content, mtime=0)
        if path.suffix != ".zip":  # it is compressed already
            path.with_name(f"{path.name}.gz").write_bytes(packed)
        size += len(content)
        packed_size += len(packed)
    return size, packed_size


def _offline(files: dict[str, bytes]) -> bytes:
    """The service worker, with the names of all files and a version that they determine."""
    names = sorted({*files} - {_OFFLINE}) + [f"pyodide/{file}" for file in _PYODIDE]
    digest = hashlib.sha256(b"".join(files[name] for name in sorted(files))).hexdigest()[:12]
    script = files[_OFFLINE].decode().replace('["FILES"]', json.dumps(["./", *names]))
    return script.replace("VERSION", digest).encode()


def _agent(agent: AgentName) -> tuple[dict[str, Any], bytes]:
    """Settings and weights as `in_browser.opened` takes them."""
    if agent.params is None:
        return {"name": agent.name}, b""
    policy, _ = network_of(agent.params)
    config = policy.config
    if agent.simulations is not None or config.architecture != "mlp" or config.layer_norm:
        raise UserError(
            f"{agent}: only an agent with the network mlp can be exported, without layer norm and "
            "search"
        )
    layers = [policy.params["params"][f"Dense_{i}"] for i in range(config.num_layers + 2)]
    settings: dict[str, Any] = {
        "name": agent.label(policy.path),
        "layout": policy.observation,
        "activation": config.activation,
        "sizes": [layer["kernel"].shape for layer in layers],
    }
    if policy.path == PARAMS:
        settings["odds"] = read_fit()
    numbers = [part for layer in layers for part in (layer["kernel"].T, layer["bias"])]
    return settings, b"".join(part.astype("<f4").tobytes() for part in numbers)


def _python(settings: dict[str, Any], weights: bytes) -> bytes:
    """The modules that a session is made of, and the agent's files, as a zip file."""
    root = Path(__file__).parents[2]
    core = ("errors", "imports", "integers", "version")
    names = (*(f"core/{name}" for name in core), *(f"{package}/__init__" for package in _PACKAGES))
    modules = [root / f"{name}.py" for name in ("__init__", *names)]
    modules += [path for room in _ROOMS for path in sorted((root / room).glob("*.py"))]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in modules:
            archive.write(path, path.relative_to(root.parent))
        archive.write(PACKAGED, PACKAGED.relative_to(root.parent))
        archive.writestr(SETTINGS, json.dumps(settings))
        archive.writestr(WEIGHTS, weights)
    return buffer.getvalue()


def _about(description: str, name: str, public_url: str) -> str:
    """Metadata from which messengers show a link to the page: with a picture at a known address."""
    facts = {"og:title": "HackMatrix", "og:type": "website", "og:description": description}
    if not public_url:
        return _metadata(facts)
    address = f"{public_url}{name.removeprefix('index.html')}"
    facts |= {"og:url": address, "og:image": f"{public_url}{_PICTURE}"} | _OF_THE_PICTURE
    return f'{_metadata(facts)}\n<link rel="canonical" href="{escape(address)}">'


def _metadata(facts: dict[str, str]) -> str:
    return "\n".join(
        f'<meta {"property" if name.startswith("og:") else "name"}="{name}" '
        f'content="{escape(content)}">'
        for name, content in facts.items()
    )


def _html(html: str, page: str, about: str) -> str:
    """The page of the server with what an exported one needs besides."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    first = f'<link rel="preload" href="{page}.json" as="fetch" crossorigin>'
    waking = f'<p id="waking" role="status">{_WAKING}</p>'
    for mark, text in (
        ("<head>", f"<head>\n{policy}\n{_MANIFEST}\n{about}\n{first}"),
        (
            '<body class="loading">',
            f'<body class="loading" data-page="{page}">\n{waking}',
        ),
        (_LINKS[page][0], "\n    ".join(_LINKS[page])),
    ):
        assert html.count(mark) == 1, mark
        html = html.replace(mark, text)
    return html
