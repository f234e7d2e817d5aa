"""Work on the hosts of a TPU: files, the set-up script, commands of a shell.

Every host has the repository, a Python and all packages in `PLACE`, and trains in a session of
tmux, which goes on when the connection ends. `worker.py` is what runs there.
"""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hackmatrix.cloud.tpu.description import Description

PLACE = "/opt/hackmatrix"
SESSION = "training"
SECRETS = "hackmatrix.env"  # in the home folder
EXTRAS = ("train", "bucket", "wandb")  # of this package, beside what it always needs
PYTHON_VERSION = "3.11"

# -P: a folder `hackmatrix` where one logs in is not taken for the package.
_WORKER = (f"{PLACE}/venv/bin/python", "-P", "-m", "hackmatrix.cloud.tpu.worker")
_NOT_SET_UP = """echo 'hackmatrix-tpu: {"state": "bare"}'"""


def look_command(tpu: "Description", after: int) -> str:
    """Tells on each host, as a line of JSON, whether it trains, and what it printed since a line.

    Args:
        tpu: the TPU and its training.
        after: number of lines of the log that are known here.
    """
    words = [*_WORKER, "look", "--job", tpu.job, "--run", tpu.name, "--after", str(after)]
    look = shlex.join(words)
    return f"if [ -e {PLACE}/ready ]; then {look}; else {_NOT_SET_UP}; fi"


def train_command(job: str, arguments: list[str], marker: str, *, again: bool) -> str:
    """Starts training in a session; with `again`, ends the one that may be there."""
    words = [*_WORKER, "start", "--job", job]
    words += ["--again"] if again else []
    return shlex.join([*words, "--marker", marker, "--", *arguments])


def setup_script(tpu: "Description") -> str:
    """A script that sets a host up as root; safe to run at each start, and twice at a time.

    It never holds a secret: whoever may read the TPU's metadata can read it.
    """
    values = {
        "place": PLACE,
        "repo": tpu.repo,
        "branch": tpu.branch,
        "bucket": tpu.bucket or "",
        "python": PYTHON_VERSION,
        "extras": " ".join(EXTRAS),
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    return _SETUP.replace("VALUES\n", "\n".join(lines) + "\n")


def write_setup_script(tpu: "Description") -> Path:
    """Writes the set-up script to a file of this machine that gcloud reads."""
    path = Path.home() / ".hackmatrix" / "tpu" / f"{tpu.name}-setup.sh"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(setup_script(tpu), encoding="utf-8")
    return path


_SETUP = r"""#!/bin/bash
# Sets up a host of a cloud TPU for hackmatrix, as root. What is there already is kept.
set -euo pipefail
VALUES
export HOME=/root UV_PYTHON_INSTALL_DIR=$place/python UV_CACHE_DIR=$place/uv-cache
export DEBIAN_FRONTEND=noninteractive PATH=$PATH:/snap/bin
mkdir -p "$place"
exec 9>"$place/lock"
flock 9 # the start-up script and a set-up by hand may meet

# The code.
git config --system --replace-all safe.directory "$place/repo" "^$place/repo\$"
if [ -d "$place/repo/.git" ]; then
    git -C "$place/repo" fetch --quiet --depth 1 "$repo" "$branch"
    git -C "$place/repo" reset --quiet --hard FETCH_HEAD
else
    git clone --quiet --depth 1 --branch "$branch" "$repo" "$place/repo"
fi
commit=$(git -C "$place/repo" rev-parse HEAD)
if [ "$(cat "$place/ready" 2>/dev/null)" = "$commit" ]; then
    echo "ready: $commit"
    exit 0
fi
rm -f "$place/ready"

# A Python of its own: that of the machine is older than what JAX needs.
add() { apt-get update -qq && apt-get install -qq -y "$1"; }
command -v tmux >/dev/null || add tmux
python3 -m pip --version >/dev/null 2>&1 || add python3-pip
uv=$place/tools/bin/uv
[ -x "$uv" ] || python3 -m pip install --quiet --target "$place/tools" uv
[ -x "$place/venv/bin/pip" ] || "$uv" venv --quiet --seed --python "$python" "$place/venv"

# The packages, in the versions of the lock; from the bucket if an earlier host has put them there.
cd "$place/repo"
"$place/venv/bin/python" - $extras >"$place/wanted.txt" <<'PY'
import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = [one for name in sys.argv[1:] for one in project["optional-dependencies"].get(name, [])]
print("jax[tpu]", *project["dependencies"], *extras, sep="\n")
PY
sed -n 's/^\([a-zA-Z0-9].*[^ ]\) *\\$/\1/p' requirements.lock >"$place/locked.txt"
key=$(cat "$place/wanted.txt" "$place/locked.txt" | sha256sum | cut -c 1-12)
wheels=$place/wheels/$key
mkdir -p "$wheels"
copy() { [ -z "$bucket" ] || gcloud storage rsync "$1" "$2" || echo "not copied: $1"; }
packages=(-r "$place/wanted.txt" -c "$place/locked.txt")
install() {
    "$uv" pip install --quiet --python "$place/venv/bin/python" \
        --no-index --find-links "$wheels" "${packages[@]}"
}
copy "$bucket/wheels/$key" "$wheels"
if ! install 2>/dev/null; then
    "$place/venv/bin/pip" wheel --quiet --wheel-dir "$wheels" "${packages[@]}"
    install
    copy "$wheels" "$bucket/wheels/$key"
fi
site=$("$place/venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')
echo "$place/repo" >"$site/hackmatrix.pth"

mkdir -p "$place/runs" "$place/jax-cache"
chmod -R a+rwX "$place" # whoever logs in trains
echo "$commit" >"$place/ready"
chmod a+r "$place/ready"
echo "ready: $commit"
"""
