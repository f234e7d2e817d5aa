"""Every command of the documents, subcommand and target of the Makefile, run as a user runs it.

Each is a real process in which nothing is replaced, on the devices that it takes by itself, in the
smallest sizes that its flags allow. `hackmatrix` is the one that the wheel installs, beside another
package of that name, in an empty folder or, if files of the repository are named, in a copy of it;
the slow suite runs it from the checkout too. `make commands` runs them.
"""

import contextlib
import fcntl
import os
import pty
import re
import shutil
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from browser import find_browser
from documented import covers, documented, made_small
from fake_bucket import FakeBucket, served
from made_places import Places, copy_of_the_repository, fake_gcloud
from paths import ROOT
from subcommands import subcommands

TRAIN = (
    "--num-envs 4 --num-steps 4 --num-minibatches 1 --update-epochs 1 --total-timesteps 32 "
    "--hidden-dim 8 --eval-episodes 4"
)
PLAY = "--episodes 2 --max-steps 20"
SLURM = {  # a job of one task
    "SLURM_JOB_ID": "1",
    "SLURM_STEP_NODELIST": "localhost",
    "SLURM_STEP_NUM_NODES": "1",
    "SLURM_NTASKS": "1",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
}
LONGER = "--total-timesteps 960"  # than the run that is resumed


class Row(NamedTuple):
    """Commands of a kind: how small they are made, and what they must give."""

    begins: str  # a regular expression at the beginning of their lines
    small: str = ""  # flags that take the place of those in the documents
    prints: str = r"\S"  # a regular expression that the output must contain
    writes: tuple[str, ...] = ()  # files, as patterns
    does: str = "ends"  # or "serves" a page, or "shows" something on a terminal
    env: dict[str, str] = {}  # noqa: RUF012


NEW_RUN = ("**/new/final_params.npz", "**/new/metrics.jsonl", "**/new/checkpoints/*/manifest.json")
PARAMS = ("**/*.npz",)
TARGETS = ROOT / ".venv-targets"

# These take most of a minute and more: searches, a curriculum's starts, everything anew, what
# differs from a quick line only in what else is compiled or in one flag, and what `.ci/run` runs.
SLOW = re.compile(
    r".*(?:make (?:lint|format|fuzz|lock)|tune .*--constraint|"
    r"train --config (?:multi_task|cartpole_best|fast|further|quick --(?:init|run)|raw |score)|"
    r"raw\.npz --program|train --distributed --config|resume-if-there|checkpoints/40 --run-name|"
    r"--resume \S+npz|scripts/train_purejaxrl|--debug|"
    r"--algorithm (?:dqn:DQN|expert_iteration)|scripts/ablation|bench compile|bench target|"
    r"make bench|make classic|make docs|make targets|--search |@|"
    r"conformance|puzzles -o|page_pictures|"
    r"analyse|--curricul|"
    r"--kernels xla|bench env --play|bench train --obs|"
    r"verify \S+npz|--sampler random|--objective pareto|"
    r"--coordinator 10|scripts/optuna|"
    r"benchmarks\.(?:raw|search|mutation|recipe|learners|scaling --rep|"
    r"coverage|figures|kernels|profile|tuning)|"
    r"clone .*--config (?:cells|raw|score)|train --config (?:original|best --run-name)|"
    r"train --config tpu_v4_8|--init-from (?:best|second|third|fourth|five|forty|points)\.npz|"
    r"my\.yaml --init-from|--resume-run |--resume my-agent|scripts/hyper|"
    r"evaluate (?:shipped |--\S+ 2 --max-steps 20 --forbid|random --env|checkpoints/ten/)|"
    r"evaluate checkpoints/my-run (?:scripted --episodes|checkpoints))"
)

# The first that fits a line holds.
ROWS = [
    Row(r".*--help", prints=r"usage: |options:"),
    Row(r".*tpu run my-tpu.yaml --dry-run", prints="gcloud"),
    Row(r"hackmatrix tpu export skypilot", writes=("task.yaml",), prints=""),
    Row(r"hackmatrix tpu export slurm", writes=("job.sh",), prints=""),
    Row(r"hackmatrix tpu export gke", writes=("jobset.yaml",), prints=""),
    Row(r"hackmatrix tpu export mig", writes=("group.sh",), prints=""),
    Row(r"hackmatrix tpu", prints="gcloud"),
    Row(r"hackmatrix train .*--print-config", prints=r"num_envs: 2048"),
    Row(r"hackmatrix train --list-configs", prints=r"best +\S"),
    Row(r"hackmatrix train --auto-tune", TRAIN, prints="done after", writes=PARAMS),
    Row(r"hackmatrix train --resume \S+npz --run-name", TRAIN, "done after 2 updates", NEW_RUN),
    Row(r"hackmatrix train --resume \S+npz", TRAIN, "done after 2 updates", PARAMS),
    Row(r"hackmatrix train --resume \S+ --run-name", LONGER, "done after 60 updates", NEW_RUN),
    Row(r"hackmatrix train --resume", LONGER, "done after 60 updates"),
    Row(r"hackmatrix train .*--process-id|for i in 0 1", TRAIN, "done after", NEW_RUN),
    Row(
        r"hackmatrix train .*--init-from",
        TRAIN.replace("--hidden-dim 8", "--num-seeds 2"),
        "done after 2 updates",
        PARAMS,
    ),
    Row(r"hackmatrix train --distributed --config", TRAIN, "done after", NEW_RUN, env=SLURM),
    Row(
        r"hackmatrix train .*--num-seeds", f"{TRAIN} --num-seeds 2", "done after 2 updates", PARAMS
    ),
    Row(r"hackmatrix train|python scripts/train_purejaxrl", TRAIN, "done after 2 updates", PARAMS),
    Row(
        r"hackmatrix tune|python scripts/(?:optuna|hyper)",
        "--num-trials 2 --fresh-seeds 1 --num-seeds 1",
        "best: ",
        ("**/best.yaml", "**/history.svg"),
    ),
    Row(
        r"hackmatrix evaluate .*--sequential",
        "--episodes 2 --max-steps 20",
        prints="decided after 2 of at most 2 games",
    ),
    Row(r"hackmatrix evaluate .*--search", f"{PLAY} --search 2", prints="win rate"),
    Row(r"hackmatrix evaluate .*--report", PLAY, prints="win rate", writes=("page.html",)),
    Row(r"hackmatrix evaluate .*--games", PLAY, prints="win rate", writes=("games.csv",)),
    Row(r"hackmatrix evaluate .*--forbid", f"{PLAY} --forbid ROW,RESET", prints="RESET"),
    Row(r"hackmatrix evaluate", PLAY, prints=r"(?:return|all|scripted) +[+-]?\d"),
    Row(r"hackmatrix compare .*--plot", writes=("curves.svg",)),
    Row(r"hackmatrix compare .*--games", prints="held-out games"),
    Row(r"hackmatrix reproduce", prints="\nreproduced"),
    Row(r"hackmatrix compare", prints="interquartile mean"),
    Row(r"hackmatrix data record|python scripts/prepare", PLAY, writes=("*/manifest.json",)),
    Row(r"hackmatrix data export", "--episodes 2"),
    Row(r"hackmatrix clone", "--positions 70 --epochs 1 --batch 32", writes=("cloned.npz",)),
    Row(r"hackmatrix checkpoint convert .*onnx", writes=("my-agent.onnx",)),
    Row(r"hackmatrix checkpoint convert|python scripts/convert", writes=("my-agent.npz",)),
    Row(r"hackmatrix checkpoint verify \S+npz", prints=r"evaluation +ok"),
    Row(r"hackmatrix checkpoint verify|python scripts/verify_check", prints=r"checksums +ok"),
    Row(r"hackmatrix cache", env={"XDG_CACHE_HOME": "its-own-cache"}),
    Row(r"hackmatrix replay .*--gif", "--width 64", writes=("**/*.gif",)),
    Row(r"hackmatrix replay .*--mp4", "--width 64", writes=("**/*.mp4",)),
    Row(r"hackmatrix replay .*--svg", writes=("**/*.svg",)),
    Row(r"hackmatrix replay .*--terminal", "--speed 50", "stage", does="shows"),
    Row(r"hackmatrix (?:play|watch) .*--terminal", prints="HackMatrix|stage", does="shows"),
    Row(r"hackmatrix (?:play|watch)", prints="<html", does="serves"),
    Row(r"hackmatrix monitor .*--page", prints="<html", does="serves"),
    Row(r"hackmatrix monitor", prints="update"),
    Row(r"hackmatrix page --export", writes=("site/index.html",)),
    Row(r"hackmatrix puzzles", "--games 1", writes=("puzzles.json",)),
    Row(r"hackmatrix conformance", prints="26,704"),
    Row(
        r"hackmatrix bench env",
        "--num-envs 16 --num-steps 8 --repeats 1",
        prints=r"env steps/s.*2 x cpu(?s:.*)equal",
    ),
    Row(
        r"hackmatrix bench train",
        "--num-envs 4 --num-steps 4 --epochs 1 --minibatches 1 --repeats 1",
        prints="steps/s",
    ),
    Row(
        r"hackmatrix bench memory",
        "--num-envs 4 --num-steps 4 --epochs 1 --minibatches 1 --updates 1",
        prints=r"[KM]i?B|bytes",
    ),
    Row(r"hackmatrix bench compile", "--repeats 1"),
    Row(r"\.venv-targets/bin/hackmatrix bench target", "--num-envs 256", "nothing was measured"),
    Row(r"hackmatrix analyse", prints="network"),
    Row(r"hackmatrix serve|hackmatrix-game", prints=r'"actionIndex"|"validActions"|"observation"'),
    Row(r"python scripts/ablation.py \S+ train", TRAIN, "done after 2 updates", PARAMS),
    Row(r"python -m benchmarks.kernels", "--num-envs 16 --repeats 1"),
    Row(r"python -m benchmarks.mutation", "--count 1", prints="killed"),
    Row(
        r"python scripts/page_pictures",
        "--out .",
        writes=(
            "page-watch.png",
            *(
                f"page-{name}-{width}.png"
                for name in ("tutorial", "puzzle", "play", "end", "review")
                for width in (1440, 1024, 390)
            ),
        ),
    ),
    Row(
        r"python -m benchmarks.recipe",
        "--groups lambda --steps 1 --num-seeds 2 --episodes 2 --out .",
        writes=("recipe.json", "recipe.svg"),
    ),
    Row(
        r"python -m benchmarks.scaling",
        "--repeats 1 --max-envs 64 --max-enemies 0 --num-envs 64 --output .",
        writes=("scaling.json", "scaling_games.svg"),
    ),
    Row(
        r"python -m benchmarks.search",
        "--simulations 2 --episodes 2 --max-steps 10 --out .",
        writes=("search.json", "search.svg"),
    ),
    Row(
        r"python -m benchmarks.tuning",
        "--num-trials 2 --num-seeds 1 --total-timesteps 2048 --jobs 1 --output .",
        writes=("tuning.json",),
    ),
    Row(
        r"python -m benchmarks.learners",
        "--num-seeds 2 --hackmatrix-seeds 2 --episodes 2 --cartpole-steps 1 --hackmatrix-steps 1 "
        "--output .",
        writes=("learners.json",),
    ),
    Row(
        r"make train",
        f'FLAGS="{TRAIN}"',
        prints=r"minus the first +\S",
        writes=("runs/*/metrics.jsonl",),
    ),
    Row(r"make play", 'FLAGS="--port 0 --no-open"', prints="<html", does="serves"),
    Row(
        r"make classic",
        'FLAGS="--num-seeds 2 --episodes 2 --configs tiny --output ."',
        writes=("classic.json", "classic.svg"),
    ),
    Row(
        r"make bench",
        'FLAGS="--repeats 1 --seconds 0.02 --output ."',
        prints="HackMatrix",
        writes=("peers.md", "peers.svg"),
    ),
    Row(
        r"make slow",
        env={"PYTEST_ADDOPTS": "tests/learning/settings/test_config_file.py"},
        prints="passed",
    ),
    Row(r"make targets", writes=(".venv-targets/bin/hackmatrix",), prints=""),
    Row(r"make docs", writes=("build/site/index.html",)),
    Row(r"make clean", prints="rm -rf"),
    Row(r"make lock", prints="uv pip compile", writes=("requirements*.lock",)),
    Row(r"make help", prints="make train|train +train"),
    Row(r"python -m hackmatrix.game.rules.layout_tables", prints="go_to_best"),
    Row(r"python -m hackmatrix.game.drawing", writes=("docs/board.svg",), prints=""),
]


# What the documents leave out of a line that they show nowhere in full.
FILLED = {
    "python scripts/train_purejaxrl.py ...": "python scripts/train_purejaxrl.py",
    "python scripts/verify_checkpoint.py --checkpoint ...": "python scripts/verify_checkpoint.py "
    "--checkpoint checkpoints/my-run",
    "python scripts/convert_checkpoint.py --input ... --output ...": "python "
    "scripts/convert_checkpoint.py --input checkpoint_100.pkl --output my-agent.npz",
    "hackmatrix compare RUN... --metric eval/win_rate --plot curves.svg": "hackmatrix compare "
    "checkpoints/a-0 checkpoints/b-0 --metric eval/win_rate --plot curves.svg",
    "hackmatrix evaluate --episodes 1000 --seed 5 --forbid PUSH,PULL,...": "hackmatrix evaluate "
    "--forbid PUSH,PULL",
    "hackmatrix replay ... --terminal": "hackmatrix replay game.json --terminal",
    "python -m benchmarks.tuning --rejax ... --zoo ...": "python -m benchmarks.tuning",
    "hackmatrix watch --search N": "hackmatrix watch --search 2",
    "python scripts/optuna_search.py --config FILE --num-trials 50 --pruning": "python "
    "scripts/optuna_search.py --config my.yaml --search-space space.yaml --pruning",
    "python scripts/hyperparameter_search.py --config FILE --search-space FILE --num-trials 20": ""
    "python scripts/hyperparameter_search.py --config my.yaml --search-space space.yaml",
}
UNDOCUMENTED = ["make help", "make clean", "make lock", "make sb3"]


def targets() -> list[str]:
    """All targets of the Makefile."""
    return [
        f"make {name}" for name in re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.M)
    ]


def row_of(line: str) -> Row:
    return next((row for row in ROWS if re.match(row.begins, line)), Row(line))


def as_run(line: str) -> str:
    """A documented line in its smallest size; lines that come to the same are equal."""
    line = line.removeprefix(".venv/bin/").replace("MODEL_DIR", "my-model")
    if not re.match("hackmatrix (?:compare|monitor)", line):
        line = re.sub(
            r"(?<![\w/])checkpoints/(?!ten|three|frog|linear)[\w-]+", "checkpoints/my-run", line
        )
    line = re.sub(r"gs://my-bucket/runs/[\w-]+", "gs://my-bucket/runs/my-run", line)
    line = re.sub(r"--resume-run \S+", "--resume-run my-run", line)
    line = line.replace("checkpoints/600", "checkpoints/40")
    line = re.sub(r"@\d+", "@2", line)
    line = re.sub(r" --(?:lr|ent-coef|final-ent-coef|gae-lambda|seed|max-steps) \S+", "", line)
    line = re.sub(r"--run-name \S+", "--run-name new", line)
    return made_small(line, row_of(line).small)


FULL, MENTIONS = documented()
# Its `make test MARKS="not slow" WORKERS=3` is `make test` and `make thorough`.
RUN_BY_CI = {
    "make test",
    "make thorough",
    *re.findall(r"^make .*?(?= \|\|| >|$)", (ROOT / ".ci" / "run").read_text(), re.M),
}
LINES = sorted(
    {as_run(command.line) for command in FULL if command.line not in RUN_BY_CI}
    | {as_run(line) for line in FILLED.values()}
    | {as_run(line) for line in UNDOCUMENTED}
)


def test_what_the_documents_mention_is_run() -> None:
    lines = [*(command.line for command in FULL), *FILLED.values()]
    missing = [
        f"{command.place}: {command.line}"
        for command in MENTIONS
        if command.line not in FILLED and not any(covers(line, command.line) for line in lines)
    ]
    assert missing == []


@pytest.mark.parametrize("name", [*(f"hackmatrix {name}" for name in subcommands()), *targets()])
def test_every_subcommand_and_target_is_run(name: str) -> None:
    run = [f"{line.removeprefix(f'{TARGETS.name}/bin/')} " for line in LINES]
    assert name in RUN_BY_CI or any(line.startswith(f"{name} ") for line in run)


def cases() -> Iterator[Any]:
    """Each line and whether it runs from the wheel; what the package runs, from both."""
    for line in LINES:
        wheel = line.startswith(("hackmatrix", "for i"))
        yield pytest.param(line, wheel, marks=pytest.mark.slow if SLOW.match(line) else (), id=line)
        if wheel:
            yield pytest.param(line, False, marks=pytest.mark.slow, id=f"{line} (checkout)")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("line", "wheel"), list(cases()))
def test_command(line: str, wheel: bool, places: Places, tmp_path: Path) -> None:
    row = row_of(line)
    if re.search(r"sb3|scripts/train\.py|watch_trained", line):
        pytest.importorskip("torch", reason="`make sb3` installs torch, which is not locked")
    if ("page --export" in line or "--pyodide" in line) and not shutil.which("npm"):
        pytest.skip("npm, which brings Pyodide, is not installed")
    if line.startswith(".venv-targets") and not TARGETS.exists():
        pytest.skip("`make targets` has not made .venv-targets")
    if "page_pictures" in line:
        find_browser()
    run = Run(line, row, places, tmp_path, wheel=wheel)
    with contextlib.ExitStack() as stack:
        if "gs://" in line:
            stack.enter_context(run.bucket())
        if " tpu " in line:
            run.gcloud()
        output = {"ends": run.ends, "serves": run.serves, "shows": run.shows}[row.does]()
    assert re.search(row.prints, output), output
    for pattern in row.writes:
        files = [path for path in run.folder.glob(pattern) if path.stat().st_size]
        assert files, f"{line} wrote no {pattern}\n{output}"


class Run:
    """A command that runs in a folder of its own."""

    def __init__(self, line: str, row: Row, places: Places, folder: Path, *, wheel: bool) -> None:
        self.line = on_free_ports(line)
        self.row = row
        self.places = places
        self.folder = folder / "here"
        if wheel and not re.search(
            "hackmatrix/configs/|docs/|tests/|frog:|linear:|dqn:|/shipped/", line
        ):
            self.folder.mkdir()
        else:
            copy_of_the_repository(self.folder)
            (self.folder / ".venv").symlink_to(ROOT / ".venv")
            if line.startswith(TARGETS.name):
                (self.folder / TARGETS.name).symlink_to(TARGETS)
        binaries = places.wheel if wheel else ROOT / ".venv" / "bin"
        places.prepare(self.folder, line)
        self.environment = places.environment(binaries) | row.env
        self.environment["MINARI_DATASETS_PATH"] = str(folder / "minari")  # it keeps what it has
        if line == "make lock":
            path = f"{places.made('uv') / 'bin'}{os.pathsep}{self.environment['PATH']}"
            self.environment["PATH"] = path
        if line.startswith("hackmatrix"):
            self.environment["PYTHONPATH"] = str(places.other_package)

    @contextlib.contextmanager
    def bucket(self) -> Iterator[None]:
        """A bucket with the runs that the line names."""
        bucket = FakeBucket()
        for file in (path for path in self.folder.glob("checkpoints/*/**/*") if path.is_file()):
            name = file.relative_to(self.folder / "checkpoints").as_posix()
            bucket.put(f"runs/{name}", file.read_bytes())
        shutil.rmtree(self.folder / "checkpoints", ignore_errors=True)
        with served(bucket) as url:
            self.environment["STORAGE_EMULATOR_HOST"] = url
            yield

    def gcloud(self) -> None:
        folder = self.folder.parent / "gcloud"
        fake = fake_gcloud(folder)
        there = {"queue": "ACTIVE", "node": "READY", "hosts": "training", "log": ["update 1"]}
        ended = there | {"hosts": "ended", "code": 0, "command": "--marker gs://my-bucket/marker "}
        worlds = {"create": {}, "run": ended, "train": there | {"hosts": "idle"}}
        fake.change(**worlds.get(self.line.split()[2], there))
        self.environment["PATH"] = f"{folder}{os.pathsep}{self.environment['PATH']}"
        self.environment["FAKE_GCLOUD"] = str(folder)

    def start(self, *, on_terminal: bool = False, **streams: Any) -> subprocess.Popen[str]:
        def as_from_a_shell() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            if on_terminal:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        return subprocess.Popen(
            ["bash", "-c", self.line if re.search(r"[&;]", self.line) else f"exec {self.line}"],
            cwd=self.folder,
            env=self.environment,
            text=True,
            start_new_session=True,
            preexec_fn=as_from_a_shell,
            **streams,
        )

    def ends(self) -> str:
        """Runs it to its end; returns what it printed."""
        given = '{"action": "reset"}\n' if "serve" in self.line or "-game" in self.line else ""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = self.start(**pipes)
        try:
            output, _ = process.communicate(given, timeout=1000)
        finally:
            end(process)
        assert process.returncode == 0, f"{self.line}\n{output}"
        assert "Traceback" not in output, output
        assert "Warning" not in output, output
        return output

    def serves(self) -> str:
        """Starts a server, opens its page and interrupts it; returns the page."""
        process = self.start(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout
        try:
            printed = ""
            while not (url := re.search(r"http://\S+", printed)):
                line = process.stdout.readline()
                assert line, f"{self.line} ended\n{printed}"
                printed += line
            with urllib.request.urlopen(url[0], timeout=60) as answer:
                page: str = answer.read().decode()
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
            process.communicate(timeout=60)
        finally:
            end(process)
        by_make = (2, -signal.SIGINT) if self.line.startswith("make") else ()
        assert process.returncode in (0, 130, *by_make)
        return page

    def shows(self) -> str:
        """Starts it on a terminal, and presses Ctrl-C when what it should show is there."""
        terminal, its_side = pty.openpty()
        fcntl.ioctl(its_side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        streams = {"stdin": its_side, "stdout": its_side, "stderr": its_side}
        process = self.start(on_terminal=True, **streams)
        os.close(its_side)
        shown = bytearray()

        def read() -> None:
            with contextlib.suppress(OSError):
                while chunk := os.read(terminal, 65536):
                    shown.extend(chunk)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            until = time.monotonic() + 120
            while not re.search(self.row.prints, shown.decode(errors="replace")):
                assert time.monotonic() < until, shown.decode(errors="replace")
                assert process.poll() is None, shown.decode(errors="replace")
                time.sleep(0.1)
            os.write(terminal, b"\x03")
            process.wait(timeout=60)
        finally:
            end(process)
            reader.join(timeout=5)
            os.close(terminal)
        assert process.returncode in (0, 130), shown.decode(errors="replace")
        return shown.decode(errors="replace")


def end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def on_free_ports(line: str) -> str:
    """The line with ports that nothing uses, for servers and for processes that meet."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    line = re.sub(r"(?:10\.0\.0\.1|localhost):8476", f"localhost:{port}", line)
    serves = row_of(line).does == "serves" and not line.startswith("make")
    return f"{line} --port 0" if serves else line
