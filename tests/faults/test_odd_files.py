"""Files of every kind that a loader can meet: it reads them, or refuses them in one line."""

import gzip
import io
import json
import pickle
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recordings import lines

from hackmatrix.agents.networks.policy import load_policy
from hackmatrix.core.errors import UserError
from hackmatrix.core.files import write_manifest
from hackmatrix.game.conformance.format import read_games
from hackmatrix.learning.reporting.alarms import HealthOfAgents, parse_row
from hackmatrix.learning.reporting.metrics import LEARNER_METRICS
from hackmatrix.learning.settings.config import TrainConfig
from hackmatrix.learning.settings.config_file import dump_config, read_config
from hackmatrix.learning.settings.resolve import resolve
from hackmatrix.runs.checkpoints import Facts, check_checkpoint, read_facts, save_checkpoint
from hackmatrix.runs.metrics_file import METRICS_FILE, read_metrics
from hackmatrix.runs.params import save_params

QUICK, MANY = 30, 4_000  # inputs for each loader; there are five

FORBIDDEN = ("os.system", "subprocess.Popen", "pickle.find_class", "os.exec", "socket.connect")
_events: list[str] = []
_watched = False


def _audit(event: str, _: object) -> None:
    if _watched and event in FORBIDDEN:
        _events.append(event)


sys.addaudithook(_audit)


@contextmanager
def nothing_executed() -> Iterator[None]:
    global _watched
    _events.clear()
    _watched = True
    try:
        yield
    finally:
        _watched = False
    assert _events == []


class Malicious:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path("pwned").touch, ()


class Loader(NamedTuple):
    """A reader of files, the name of a file, and a whole one; `repair` follows a change."""

    load: Callable[[Path], object]
    file: str
    make: Callable[[Path], None]
    repair: Callable[[Path], None] = lambda _: None


CONFIG = TrainConfig().as_dict()
FACTS = Facts(7, 448, 7, "CartPole-v1", "0.1.0", CONFIG | {"num_seeds": 2}, None)
ROW = {"update": 3, "timesteps": 9, "train/entropy": 1.5, "train/approx_kl": None, "alarms": ["x"]}
AGENTS = [{"seed": 0, "train/entropy": 1.0}, {"seed": 1, "train/entropy": 0.1}]


def make_params(folder: Path) -> None:
    layers = {f"Dense_{i}": {"kernel": np.ones((4, 4)), "bias": np.ones(4)} for i in range(2)}
    layers["Dense_2"] = {"kernel": np.ones((4, 1)), "bias": np.ones(1)}
    save_params(folder / "params_7.npz", {"params": layers}, FACTS.as_json())


def make_checkpoint(folder: Path) -> None:
    evaluation = {"mean_return": 1.0, "agents": [{"mean_return": 1.0}] * 2}
    facts = Facts(7, 448, 7, "CartPole-v1", "0.1.0", FACTS.config, evaluation)
    save_checkpoint(folder, {"a": np.ones(3)}, facts)


def make_config(folder: Path) -> None:
    (folder / "config.yaml").write_text(dump_config(TrainConfig()))


def make_metrics(folder: Path) -> None:
    rows = [ROW, ROW | {"update": 6, "agents": AGENTS}, {"update": 7, "eval/mean_return": 1.0}]
    (folder / METRICS_FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))


def make_recordings(folder: Path) -> None:
    game = json.loads(lines()[0])
    game["steps"] = game["steps"][:3]
    (folder / "games.jsonl").write_text(json.dumps(game) + "\n")


def load_facts(file: Path) -> object:
    read_facts(file.parent)
    return [check_checkpoint(file.parent).facts.of_agent(k) for k in range(2)]


def load_config(file: Path) -> object:
    return resolve({}, read_config(file))


def load_metrics(file: Path) -> object:
    health = HealthOfAgents(LEARNER_METRICS)
    return [health.check(row["update"], parse_row(row)) for row in read_metrics(file.parent)]


FACTS_FILE = "checkpoints/7/facts.json"
LOADERS = {
    "params": Loader(load_policy, "params_7.npz", make_params),
    "facts of params": Loader(
        lambda file: load_policy(file.with_suffix(".npz")), "params_7.json", make_params
    ),
    "facts": Loader(
        load_facts, FACTS_FILE, make_checkpoint, lambda file: write_manifest(file.parent)
    ),
    "config": Loader(load_config, "config.yaml", make_config),
    "metrics": Loader(load_metrics, METRICS_FILE, make_metrics),
    "recordings": Loader(lambda file: list(read_games(file)), "games.jsonl", make_recordings),
}


def loads_or_refuses(loader: Loader, file: Path) -> None:
    refusal = ""
    with nothing_executed():
        try:
            loader.load(file)
        except UserError as error:
            refusal = str(error)
    assert "\n" not in refusal
    assert len(refusal) < 600 + 2 * len(str(file))
    assert not Path("pwned").exists()


# --- drawn files ---------------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, -1, 0, 2**63, 1e308, float("nan"), float("inf"), "", "x" * 5000]),
    st.floats(),
    st.text(max_size=20),
)
VALUES = st.recursive(
    SCALARS,
    lambda each: (
        st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=8), each, max_size=4)
    ),
    max_leaves=8,
)


def altered(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value with one part replaced, added or removed."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        name = draw(st.sampled_from(sorted(value)))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            return {key: each for key, each in value.items() if key != name}
        if kind == 1:
            return value | {draw(st.text(max_size=8)): draw(VALUES)}
        return value | {name: altered(draw, value[name])}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], altered(draw, value[place]), *value[place + 1 :]]
    return draw(VALUES)


def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes with a few of them changed, cut, doubled, or put in."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 40))
        piece = draw(
            st.one_of(
                st.binary(max_size=20),
                st.sampled_from([b"[" * 3000, b"{" * 3000, b'{"a":' * 3000, b"9" * 5000, b"&a *a"]),
                st.sampled_from([b"!!python/object/apply:os.system ['touch pwned']", b"- ", b": "]),
                st.just(content[start : start + length]),
            )
        )
        content = content[:start] + piece + content[start + length * draw(st.integers(0, 1)) :]
    return content[: draw(st.integers(0, len(content)))] if draw(st.booleans()) else content


def npz(draw: st.DrawFn) -> bytes:
    """An archive of params with a crafted header, member or pickle."""
    header = draw(
        st.one_of(
            st.text(max_size=60),
            st.builds(
                "{{'descr': {!r}, 'fortran_order': {!r}, 'shape': {!r}}}".format,
                st.sampled_from(["<f4", "<f8", "|O", "<M8[s]", "|V0", "", [("a", "<f4")], "<c8"]),
                st.sampled_from([True, False, None, 3]),
                st.one_of(
                    st.tuples(st.sampled_from([0, 1, 4, -1, 2**31, 2**62, 10**40])),
                    st.tuples(st.integers(-1, 5), st.integers(-1, 5)),
                    st.just(()),
                ),
            ),
            st.sampled_from(["(" * 500, "[" * 9000, "__import__('os')", "{" * 99, "9" * 6000]),
        )
    )
    raw = header.encode("utf-8", "replace")
    version = draw(st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"]))
    width = 2 if version[0] == 1 else 4
    member = b"\x93NUMPY" + version + len(raw).to_bytes(width, "little") + raw
    member += draw(st.binary(max_size=64)) or pickle.dumps(Malicious())
    names = st.sampled_from(
        ["params.Dense_0.kernel", "params.Dense_0.kernel.a", "params", ".", "../x", "a", "é"]
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
            suffix = draw(st.sampled_from([".npy", ".npy", ""]))
            archive.writestr(name + suffix, draw(st.sampled_from([member, b"text", b""])))
    return buffer.getvalue()


def drawn(draw: st.DrawFn, name: str, whole: bytes) -> bytes:
    """A file for a loader, from its whole one or from nothing."""
    kind = draw(st.integers(0, 3))
    if kind == 0:
        return draw(st.binary(max_size=200))
    if kind == 1 or (name == "params" and kind == 2):
        return damaged(draw, whole)
    if name == "params":
        return npz(draw)
    if name == "config":
        import yaml

        return yaml.safe_dump(altered(draw, yaml.safe_load(whole))).encode("utf-8", "replace")
    rows = [json.loads(line) for line in whole.splitlines()] if name == "metrics" else []
    changed = "\n".join(json.dumps(altered(draw, row)) for row in rows or [json.loads(whole)])
    content = changed.encode("utf-8", "replace")
    return gzip.compress(content) if name == "recordings" and kind == 3 else content


def try_many(name: str, folder: Path, count: int) -> None:
    loader = LOADERS[name]
    loader.make(folder)
    file = folder / loader.file
    whole = file.read_bytes()
    loader.repair(file)
    loader.load(file)

    @settings(
        max_examples=count, database=None, suppress_health_check=list(HealthCheck), print_blob=False
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        file.write_bytes(drawn(data.draw, name, whole))  # type: ignore[arg-type]
        loader.repair(file)
        loads_or_refuses(loader, file)

    check()


@pytest.mark.thorough
@pytest.mark.parametrize("name", LOADERS)
def test_odd_files_are_read_or_refused_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try_many(name, tmp_path, QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", LOADERS)
def test_twenty_thousand_odd_files_are_read_or_refused_in_one_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try_many(name, tmp_path, MANY)


# --- files that were found to be odd -------------------------------------------------------------


ODD = [
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"[]",
    b"3",
    b'"text"',
    b"null",
    b"{}",
    b'{"format": 1}',
    b'{"format": 1, "config": 3}',
    b'{"format": 1, "config": {"architecture": []}}',
    b'{"format": 1, "config": {"hidden_dim": "wide"}}',
    b"\xff\xfe",
    b"",
    b"\n" * 3 + b'{"update": 1, "train/entropy": "high"}\n{"update": true}\n{"update": 2}\n',
    b'{"update": 1, "agents": 3}\n{"update": 1, "agents": [{}]}\n{"update": 1, "a": 1e999}\n',
    b'{"update": 1, "a": ' + b"9" * 400 + b"}\n",
    b"training: 3\n",
    b"? [a]\n: b\n",
    b"training: {lr: !!int ''}\n",
    b"training: {lr: !!timestamp x}\n",
    b"training: {lr: !!bool perhaps}\n",
    b'logging: {checkpoint_dir: "a\\0b"}\n',
]


@pytest.mark.parametrize("name", LOADERS)
def test_files_that_were_found_to_be_odd(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loader = LOADERS[name]
    loader.make(tmp_path)
    file = tmp_path / loader.file
    for content in ODD:
        file.write_bytes(content)
        loader.repair(file)
        loads_or_refuses(loader, file)


def test_rows_of_wrong_types_are_left_out(tmp_path: Path) -> None:
    bad = ['{"update": "1"}', '{"update": true}']
    bad += ['{"update": 1, "a": {}}', '{"update": 1, "a": "x"}']
    (tmp_path / METRICS_FILE).write_text("\n".join([*bad, '{"update": 2, "a": null}']) + "\n")
    assert list(read_metrics(tmp_path)) == [{"update": 2, "a": None}]


@pytest.mark.parametrize("shape", ["float32", 3, [3, 3], ["O", 3], ["float32", -1], ["x", 1], []])
def test_crafted_shapes_of_a_checkpoint_are_refused(shape: Any, tmp_path: Path) -> None:
    make_checkpoint(tmp_path)
    file = tmp_path / FACTS_FILE
    facts = json.loads(file.read_text())
    file.write_text(json.dumps(facts | {"arrays": {"a": shape}}))
    write_manifest(file.parent)
    with pytest.raises(UserError, match=r"facts.json does not list the arrays"):
        check_checkpoint(file.parent)


def test_arrays_that_are_not_those_of_the_facts_are_refused(tmp_path: Path) -> None:
    make_checkpoint(tmp_path)
    file = tmp_path / FACTS_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {"arrays": {"b": ["float64", 3]}}))
    write_manifest(file.parent)
    with pytest.raises(UserError, match=r"7 is damaged: arrays can't be read \(") as raised:
        check_checkpoint(file.parent).read_arrays()
    assert "\n" not in str(raised.value)
