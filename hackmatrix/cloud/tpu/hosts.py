"""Work on the hosts of a TPU: files, the set-up script, commands of a shell.

Every host has the repository, a Python and all packages in `HOST_FOLDER`, and trains in a session
of tmux, which goes on when the connection ends. `worker.py` is what runs there.
"""

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hackmatrix.cloud.tpu.description import Description

HOST_FOLDER = "/opt/hackmatrix"
SESSION = "training"
SECRETS = "hackmatrix.env"  # in the home folder
EXTRAS = ("train", "bucket", "wandb")  # of this package, beside what it always needs
PYTHON_VERSION = "3.11"

# -P: a folder `hackmatrix` where one logs in is not taken for the package.
_WORKER = (f"{HOST_FOLDER}/venv/bin/python", "-P", "-m", "hackmatrix.cloud.tpu.worker")
_NOT_SET_UP = """echo 'hackmatrix-tpu: {"state": "bare"}'"""


def look_command(tpu: "Description", after: int) -> str:
    """Tells on each host, as a line of JSON, whether it trains, and what it printed since a line.

    Args:
        tpu: the TPU and its training.
        after: number of lines of the log that are known here.
    """
    words = [*_WORKER, "look", "--job", tpu.job, "--run", tpu.name, "--after", str(after)]
    look = shlex.join(words)
    return f"if [ -e {HOST_FOLDER}/ready ]; then {look}; else {_NOT_SET_UP}; fi"


def train_command(job: str, arguments: list[str], marker: str, *, again: bool) -> str:
    """Starts training in a session; with `again`, ends the one that may be there."""
    words = [*_WORKER, "start", "--job", job]
    words += ["--again"] if again else []
    return shlex.join([*words, "--marker", marker, "--", *arguments])


def setup_script(
    tpu: "Description",
    commit: str = "",
    end: int | None = None,
    written: float = 0.0,
    *,
    keeps_watch: bool = True,
) -> str:
    """A script that sets a host up as root; safe to run at each start, and twice at a time.

    It never holds a secret: whoever may read the TPU's metadata can read it. The hosts take the
    commit that the run began with, kept in the bucket; run with the word `update`, the newest one.

    Args:
        tpu: the TPU and its training.
        commit: the newest commit, if its code is in the bucket in place of a repository.
        end: time at which the TPU deletes itself, in seconds since 1970.
        written: the present time, in seconds since 1970: the newest script sets end and idle hours.
        keeps_watch: whether the first host deletes the TPU then, or when it is idle.
    """
    values = {
        "place": HOST_FOLDER,
        "repo": "" if tpu.is_local else tpu.repo,
        "branch": commit or tpu.branch,
        "bucket": tpu.bucket or "",
        "pin": f"{tpu.bucket}/runs/{tpu.name}/tpu/commit",
        "type": tpu.slice.type,
        "python": PYTHON_VERSION,
        "extras": " ".join(EXTRAS),
    }
    lines = [f"{name}={shlex.quote(value)}" for name, value in values.items()]
    text = _SETUP.replace("VALUES\n", "\n".join(lines) + "\n")
    return text.replace("WATCH\n", _watch(tpu, end, written) if keeps_watch else "")


def compile_cache(tpu: "Description") -> str:
    """The folder in the bucket that keeps compiled programs for the next machine."""
    return f"{tpu.bucket}/jax-cache/{tpu.slice.type}"


def _watch(tpu: "Description", end: int | None, written: float) -> str:
    """Lines of a shell that leave a process behind, which deletes the TPU when its time is up.

    An idle TPU without a bucket is left alone, as the run would go with it.
    """
    where = f"{shlex.quote(tpu.name)} --zone={tpu.zone} --project={tpu.project} --quiet"
    tpus = "gcloud compute tpus"
    delete = f"{tpus} queued-resources delete {where} --force || {tpus} tpu-vm delete {where}"
    idle = tpu.idle_hours if tpu.bucket is not None else None
    cache = "" if tpu.bucket is None else compile_cache(tpu)
    limits = f"end={end or ''}\nidle={idle * 60 if idle else ''}\nwritten={written:.3f}\n"
    text = _WATCH.replace("LIMITS\n", limits).replace("CACHE", shlex.quote(cache))
    return text.replace("DELETE", delete)


_SETUP = r"""#!/bin/bash
# Sets up a host of a cloud TPU for hackmatrix, as root. What is there already is kept.
set -euo pipefail
VALUES
export HOME=/root UV_PYTHON_INSTALL_DIR=$place/python UV_CACHE_DIR=$place/uv-cache
export DEBIAN_FRONTEND=noninteractive PATH=$PATH:/snap/bin
mkdir -p "$place"
WATCH
exec 9>"$place/lock"
flock 9 # the start-up script and a set-up by hand may meet

# The code: of the commit that the run began with, also after its TPU was made anew.
get_code() {
    if [ -z "$repo" ]; then
        rm -rf "$place/code" && mkdir "$place/code"
        gcloud storage cat "$bucket/code/$1.tar.gz" | tar --extract --gzip --directory "$place/code"
        rm -rf "$place/repo" && mv "$place/code" "$place/repo" # only now that it is whole
        commit=$1
        return
    fi
    git config --system --replace-all safe.directory "$place/repo" "^$place/repo\$"
    [ -d "$place/repo/.git" ] || git init --quiet "$place/repo"
    git -C "$place/repo" fetch --quiet --depth 1 "$repo" "$1"
    git -C "$place/repo" reset --quiet --hard FETCH_HEAD
    commit=$(git -C "$place/repo" rev-parse HEAD)
}
pinned=
if [ -n "$bucket" ] && [ "${1:-}" != update ]; then
    pinned=$(gcloud storage cat "$pin" 2>/dev/null || true)
fi
get_code "${pinned:-$branch}"
if [ -n "$bucket" ] && [ -z "$pinned" ]; then
    only_new=$([ "${1:-}" = update ] || echo --if-generation-match=0)
    echo "$commit" >"$place/commit"
    if ! gcloud storage cp $only_new "$place/commit" "$pin"; then # another host was first
        pinned=$(gcloud storage cat "$pin") # or there is none, if nobody may write there
        get_code "${pinned:?the bucket does not keep the commit}"
    fi
fi
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
copy "$bucket/jax-cache/$type" "$place/jax-cache"
chmod -R a+rwX "$place" # whoever logs in trains
echo "$commit" >"$place/ready"
chmod a+r "$place/ready"
echo "ready: $commit"
"""

_WATCH = r"""
# The first host ends the TPU, as Google never does and nobody may be looking; and keeps compiled
# programs for the next one. It reads its limits at each look: a later set-up changes them, but not
# the script of the TPU's start, which is older and runs again when the machine does.
LIMITS
limits=$place/limits.$$
printf '%s\n' "$end" "$idle" >"$limits"
touch --date="@$written" "$limits"
if [ "$place/limits" -nt "$limits" ]; then rm "$limits"; else mv "$limits" "$place/limits"; fi
cat >"$place/watch.sh" <<'WATCH'
#!/bin/bash
cache=CACHE
exec 8>"$1/watch.lock"
flock --nonblock 8 || exit 0
touch "$1/used"
touch --date=@0 "$1/cached"
while sleep 300; do
    if [ -n "$cache" ] && [ -n "$(find "$1/jax-cache" -type f -newer "$1/cached")" ]; then
        touch "$1/cached"
        gcloud storage rsync "$1/jax-cache" "$cache"
    fi
    pgrep -f 'hackmatrix.cloud.tpu.worker work' >/dev/null && touch "$1/used"
    { read -r end && read -r idle; } <"$1/limits"
    if { [ -n "$idle" ] && [ -n "$(find "$1/used" -mmin "+$idle")" ]; } ||
        { [ -n "$end" ] && [ "$(date +%s)" -ge "$end" ]; }; then
        DELETE
    fi
done
WATCH
case $(hostname) in
    *-w-0 | *-w0) setsid nohup bash "$place/watch.sh" "$place" >>"$place/watch.log" 2>&1 & ;;
esac

"""
