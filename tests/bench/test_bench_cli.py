"""`hackmatrix bench`: what it prints is what it measured, and what it measured is the game."""

import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hackmatrix.bench import compile as compile_
from hackmatrix.bench import peers, plots, profile, scaling
from hackmatrix.bench.env import EnvBench, Speed
from hackmatrix.bench.policies import random_actions, walks_to_exit
from hackmatrix.bench.positions import crowded_position, rich_position
from hackmatrix.bench.replay import Record, ReplayError, Seen
from hackmatrix.cli.bench import BENCHMARKS
from hackmatrix.cli.main import main
from hackmatrix.engine import Game
from hackmatrix.rules.actions import NUM_DIRECTIONS
from hackmatrix.rules.board import NEIGHBOUR
from hackmatrix.rules.observation import RECORD_SIZE, RESOURCE

SMALL = ["--num-envs", "16", "--num-steps", "8"]


def figures_of(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main(["bench", *argv, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def test_env_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    figures = figures_of(capsys, "env", *SMALL, "--repeats", "3")
    assert (figures["num_envs"], figures["repeats"]) == (16, 3)
    assert figures["min"] <= figures["median"] <= figures["max"]
    assert figures["steps_per_second"] == figures["median"] > 0
    assert figures["replayed_steps"] == 16 * 8 * 4  # the run that compiles is replayed too
    assert {"device", "versions", "mean_episode_length", "stages_per_step"} <= set(figures)


@pytest.fixture(scope="module")
def harder() -> EnvBench:
    """Two timed runs of harder play with features."""
    bench = EnvBench(num_envs=16, num_steps=16, play="harder", observation="features")
    bench.repeat()
    return bench


def test_harder_play_is_harder(harder: EnvBench) -> None:
    speed = harder.result()
    assert speed.seen.steps == 16 * 16 * 2
    assert speed.seen.enemies / speed.seen.steps > 3
    assert speed.seen.stage / speed.seen.steps > 2
    assert speed.seen.stages > 0


@pytest.mark.parametrize("field", Record._fields)
@pytest.mark.parametrize("place", [(3, 0), (11, 15)], ids=["walker", "rich game"])
def test_any_difference_from_the_python_engine_is_an_error(
    harder: EnvBench, monkeypatch: pytest.MonkeyPatch, field: str, place: tuple[int, int]
) -> None:
    records = [Record(*map(np.array, record)) for record in harder._records]
    changed = getattr(records[1], field)
    changed[place] = ~changed[place] if changed.dtype == bool else changed[place] + 1
    monkeypatch.setattr(harder, "_records", records)
    with pytest.raises((ReplayError, ValueError)):  # ValueError: there is no such action
        harder.result()


def test_wrong_features_are_an_error(harder: EnvBench, monkeypatch: pytest.MonkeyPatch) -> None:
    carry = harder._carry
    monkeypatch.setattr(harder, "_carry", carry._replace(features=carry.features + 0.01))
    with pytest.raises(ReplayError, match="features"):
        harder.result()


def test_the_sums_cover_all_that_a_step_makes(harder: EnvBench) -> None:
    run = jax.eval_shape(harder._timed, harder._carry, harder._starts, jnp.uint32(0))
    shapes = {name: leaf.shape for name, leaf in run.sums.items()}
    state, env = harder._carry, harder._env
    assert shapes["observation"] == (env.observation_size,) == state.observation.shape[1:]
    assert shapes["features"] == (env.feature_size,)
    assert shapes["mask"] == (env.num_actions,)
    assert shapes["parts"] == (15,)


def test_a_difference_is_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Game, "observation", lambda _: bytes(RECORD_SIZE))
    assert main(["bench", "env", *SMALL, "--repeats", "1"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "observation" in err


def test_random_actions_are_valid_and_equally_likely() -> None:
    bits = jnp.full(30_000, 0b1000_0000_0000_0001_0000_0010, jnp.uint32)
    words = jax.random.bits(jax.random.key(0), bits.shape, jnp.uint32)
    actions, counts = np.unique(random_actions(bits, words), return_counts=True)
    assert actions.tolist() == [1, 8, 23]
    assert (abs(counts - 10_000) < 400).all()


def test_the_walker_walks_to_the_exit() -> None:
    games = [Game.new(stream) for stream in range(32)]
    observations = jnp.array([list(game.observation()) for game in games], jnp.uint8)
    bits = jnp.array([sum(1 << a for a in game.valid_actions()) for game in games], jnp.uint32)
    actions = walks_to_exit(observations, bits, jnp.ones(32, jnp.uint32))
    for game, action in zip(games, actions.tolist(), strict=True):
        distance = {
            direction: game.observation()[RESOURCE + cell] >> 4
            for direction in range(NUM_DIRECTIONS)
            if (cell := NEIGHBOUR[game.state.player.cell][direction]) is not None
            and direction in game.valid_actions()
        }
        assert distance[action] == min(distance.values())
    random = walks_to_exit(observations, bits, jnp.zeros(32, jnp.uint32)).tolist()
    assert random == [game.valid_actions()[0] for game in games]


@pytest.mark.parametrize("enemies", [0, 3, 32])
def test_crowded_positions(enemies: int) -> None:
    state = crowded_position(7, 5, enemies)
    assert (state.stage, len(state.enemies), state.transmissions) == (5, enemies, [])
    assert Game.from_dict(Game(state).to_dict()).valid_actions()  # a legal state


def test_rich_positions_are_of_later_stages() -> None:
    states = [rich_position(number) for number in range(100)]
    assert {state.stage for state in states} == set(range(3, 9))
    assert all(len(state.enemies) >= 6 for state in states)


def test_compile_empties_the_cache_folder_once_for_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(folder: Path) -> float:
        files = len(list(folder.iterdir()))
        (folder / "compiled").touch()
        return files

    monkeypatch.setattr(compile_, "_PROCESSES", {"a": seconds, "b": seconds})
    figures = figures_of(capsys, "compile", "--repeats", "2")
    assert figures["seconds"] == {name: {"empty": 0, "filled": 1} for name in "ab"}


def test_compile_times_processes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.2)\nprint(1)\ntime.sleep(0.5)")
    (tmp_path / "broken.py").write_text("raise SystemExit('no luck')")
    slow = compile_._to_first_output("slow")(tmp_path)
    assert slow > 0.2
    monkeypatch.setattr(compile_, "_PROCESSES", {"it": compile_._to_first_output("broken")})
    assert main(["bench", "compile"]) == 2
    assert capsys.readouterr().err.endswith("`broken` failed: no luck\n")


class FakeBench:
    """Stands for `EnvBench`: its rate is its number of games, divided by enemies at the start."""

    order: ClassVar[list[int]] = []

    def __init__(
        self,
        num_envs: int = 8,
        num_steps: int = 1,
        play: str = "random",
        observation: str = "compact",
        positions: Sequence[Any] = (),
    ) -> None:
        self.num_envs, self.num_steps, self.play, self.observation = (
            num_envs,
            num_steps,
            play,
            observation,
        )
        self.enemies = len(positions[0].enemies) if positions else 0
        self.rates: list[float] = []

    def repeat(self) -> float:
        self.order.append(self.num_envs)
        self.rates.append(self.num_envs / (1 + self.enemies) + len(self.rates))
        return self.rates[-1]

    def result(self, games: int = 64) -> Speed:
        seen = Seen(steps=games, enemies=games * self.enemies)
        return Speed(
            self.num_envs, self.num_steps, self.play, self.observation, self.rates, 1, seen
        )


@pytest.fixture
def plotted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Collects the paths of plots instead of drawing them; benches are fakes."""
    paths: list[Path] = []
    monkeypatch.setattr(plots, "require_matplotlib", lambda: None)
    monkeypatch.setattr(plots, "line_plot", lambda path, *_, **__: paths.append(path))
    monkeypatch.setattr(plots, "bar_plot", lambda path, *_, **__: paths.append(path))
    monkeypatch.setattr(FakeBench, "order", [])
    monkeypatch.setattr(scaling, "EnvBench", FakeBench)
    monkeypatch.setattr(peers, "EnvBench", FakeBench)
    return paths


def test_scaling(capsys: pytest.CaptureFixture[str], plotted: list[Path], tmp_path: Path) -> None:
    argv = ["--max-envs", "256", "--max-enemies", "4", "--num-envs", "60", "--repeats", "3"]
    figures = figures_of(capsys, "scaling", *argv, "--output", str(tmp_path))
    by_games = [(it["num_envs"], it["min"], it["median"]) for it in figures["games"]]
    assert by_games == [(64, 64, 65), (128, 128, 129), (256, 256, 257)]
    assert [(it["enemies"], it["mean_enemies"], it["min"]) for it in figures["enemies"]] == [
        (0, 0, 60),
        (1, 1, 30),
        (2, 2, 20),
        (4, 4, 12),
    ]
    assert FakeBench.order == [64, 128, 256] * 3 + [60] * 4 * 3
    assert json.loads((tmp_path / "scaling.json").read_text()) == figures
    assert {path.name for path in plotted} == {"scaling_games.svg", "scaling_enemies.svg"}


@pytest.mark.slow
def test_positions_with_enemies_are_put_back() -> None:
    bench = EnvBench(16, 16, positions=[crowded_position(number, 5, 12) for number in range(3)])
    seen = bench.result().seen
    assert seen.stage / seen.steps > 3
    assert seen.enemies / seen.steps > 5


class Counter:
    """A peer that counts: action 0 or 2 is added to the number that is its state."""

    def reset(self, keys: jax.Array) -> jax.Array:
        return jnp.zeros(keys.shape[0], jnp.int32)

    def mask(self, state: jax.Array) -> jax.Array:
        return jnp.stack([state >= 0, state < 0, state >= 0], axis=1)

    def step(self, keys: jax.Array, state: jax.Array, actions: jax.Array) -> Any:
        return state + actions, (actions, actions == 1, state * 0.5)


def test_a_peer_is_stepped_with_valid_actions() -> None:
    bench = peers.PeerBench(Counter(), num_envs=32, seconds=0.001)
    games = bench.num_envs
    run = bench._timed(jnp.zeros(games, jnp.int32), jnp.uint32(7), jnp.int32(50))
    state, (total, invalid, _) = run
    assert int(invalid) == 0
    assert int(total) == int(state.sum())
    assert games * 50 * 0.9 < int(total) < games * 50 * 1.1  # 0 and 2 are equally likely
    assert bench.repeat() == bench.rates[-1] > 0


def test_peers_take_turns(
    capsys: pytest.CaptureFixture[str],
    plotted: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(peers, "PEERS", (peers.Entry("counter", "jax", Counter, 16),))
    figures = figures_of(capsys, "peers", "--seconds", "0.001", "--output", str(tmp_path))
    names = [it["name"] for it in figures["environments"]]
    assert names == [*peers.OURS, "counter"]
    assert [it["num_envs"] for it in figures["environments"]] == [
        8,
        8,
        8,
        8,
        16 * jax.device_count(),
    ]
    assert json.loads((tmp_path / "peers.json").read_text()) == figures
    assert all(f"| {name} |" in (tmp_path / "peers.md").read_text() for name in names)
    assert [path.name for path in plotted] == ["peers.svg"]


def test_a_peer_that_is_missing_is_an_error(
    capsys: pytest.CaptureFixture[str], plotted: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = peers.Entry("no game", "no-such-package", Counter, 16)
    monkeypatch.setattr(peers, "PEERS", (entry,))
    assert main(["bench", "peers"]) == 2
    assert "no game can't be run" in capsys.readouterr().err
    assert plotted == []


def test_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")  # of the extra `bench`
    plots.line_plot(
        tmp_path / "line.svg",
        [64, 128],
        [1, 2],
        [(1, 1), (1, 3)],
        title="speed",
        x_label="games",
        y_label="steps",
        log_x=True,
    )
    plots.bar_plot(tmp_path / "bar.svg", ["a", "b"], [1, 1000], [True, False], title="all")
    assert "speed" in (tmp_path / "line.svg").read_text()
    assert "1,000" in (tmp_path / "bar.svg").read_text()


PROGRAM = """\
HloModule jit_run, is_scheduled=true

FileNames
1 "/x/hackmatrix/jaxgame/game.py"
2 "/x/hackmatrix/jaxgame/bitboard.py"
3 "/x/other/numpy.py"

FunctionNames
1 "step"
2 "nth"
3 "walk.<locals>.go"

FileLocations
1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=1}
2 {file_name_id=2 function_name_id=2 line=1 end_line=1 column=1 end_column=1}
3 {file_name_id=1 function_name_id=3 line=1 end_line=1 column=1 end_column=1}
4 {file_name_id=3 function_name_id=2 line=1 end_line=1 column=1 end_column=1}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=1}
4 {file_location_id=4 parent_frame_id=4}

%inner (p: s32[]) -> s32[] {
  %add.1 = s32[] add(%p, %p), metadata={op_name="a" stack_frame_id=4}
  %add.2 = s32[] add(%p, %p), metadata={op_name="a" stack_frame_id=3}
  ROOT %add.3 = s32[] add(%add.1, %add.2), metadata={op_name="a" stack_frame_id=2}
}

ENTRY %main (p: s32[]) -> s32[] {
  %tool.1 = s32[] negate(%p), metadata={op_name="b" stack_frame_id=2}
  %fused.1 = s32[] fusion(%p), kind=kLoop, calls=%inner, metadata={stack_frame_id=1}
  ROOT %while.1 = s32[] while(%fused.1), body=%x, metadata={op_name="b" stack_frame_id=1}
}
"""


def test_places_of_a_program() -> None:
    places = profile.places(PROGRAM)
    assert places["tool.1"] == "game.py step"  # who uses the tool
    assert places["add.1"] == "game.py walk.go"  # who calls another library
    assert places["fused.1"] == "game.py walk.go"  # where most of it comes from
    assert places["while.1"].startswith("XLA's own")


def test_seconds_of_places() -> None:
    def event(op: str, ts: float, dur: float, module: str = "jit_run") -> dict[str, Any]:
        args = {"hlo_op": op, "hlo_module": module}
        return {"pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}

    events = [
        event("tool.1", 2e6, 3e6),
        event("while.1", 0, 9e6),
        event("fused.1", 5e6, 1e6),
        event("fused.1", 9e6, 4e6),
        event("tool.1", 0, 50e6, module="jit_other"),
        {"ph": "M"},
    ]
    seconds = profile.seconds_by_place(events, "jit_run", profile.places(PROGRAM))
    own = next(place for place in seconds if place.startswith("XLA's own"))
    expected = {"game.py step": 3, "game.py walk.go": 5, own: 5}
    assert seconds == pytest.approx(expected)


@pytest.mark.slow
def test_profile(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figures = figures_of(capsys, "profile", *SMALL, "--output", str(tmp_path))
    assert sum(figures["shares"].values()) == pytest.approx(1)
    assert any(place.startswith("enemy_turn.py ") for place in figures["shares"])
    assert list(tmp_path.rglob("*.trace.json.gz"))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["moon"], "nothing to measure is called 'moon'; there are env, "),
        (["sclaing"], "did you mean scaling?"),
        (["env", "--repeats", "0"], "--repeats must be at least 1, got 0"),
        (["env", "--play", "easy"], "invalid choice: 'easy'"),
        (["env", "--num-env", "8"], "did you mean --num-envs?"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert main(["bench", *argv]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_help_lists_all(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    assert main(["bench", *argv]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out and bench.help in out for name, bench in BENCHMARKS.items())


@pytest.mark.parametrize("name", BENCHMARKS)
def test_help_of_each_has_an_example(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit):
        main(["bench", name, "--help"])
    assert f"hackmatrix bench {name} " in capsys.readouterr().out.split("example:")[1]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_each_takes_the_options_of_the_command(name: str) -> None:
    measure = importlib.import_module(f"hackmatrix.bench.{name}").measure
    expected = {field.name: field.default for field in fields(BENCHMARKS[name].options)}
    del expected["json"]
    parameters = inspect.signature(measure).parameters.values()
    assert {parameter.name: parameter.default for parameter in parameters} == expected


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from hackmatrix.cli.main import main\n"
        "main(['bench', '--help'])\n"
        "sys.exit(f'{heavy}' if (heavy := {'jax', 'numpy', 'flax'} & set(sys.modules)) else 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
