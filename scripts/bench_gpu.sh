#!/usr/bin/env bash
# Measures everything on a machine with an accelerator, in one call of less than ten minutes.
#
# Needs a checkout and a Python with JAX, flax and optax; it needs no network and installs nothing.
#
#   scripts/bench_gpu.sh [FOLDER]      results go there (default: bench-gpu)
#
# PYTHON, ENVS (numbers of games to try), TRAIN_ENVS, STEPS and LIMIT (seconds for all) can be set. If a
# part fails or takes longer than its share, its error is in its log and the others still run; parts for
# which no time is left are skipped. The exit code is 0 if all parts succeeded.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
mkdir -p "${1:-bench-gpu}"
out=$(cd "${1:-bench-gpu}" && pwd)
envs=${ENVS:-65536 262144 16384 1048576 4096}
train_envs=${TRAIN_ENVS:-8192 2048 32768}
limit=${LIMIT:-570}
steps=${STEPS:-64}
export PYTHONPATH=.:tests/helpers
export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-$out/cache}
export XLA_PYTHON_CLIENT_PREALLOCATE=false # so that parts that start processes can share the device
failed=0

# part NAME SECONDS COMMAND...: its output in NAME.json or NAME.txt, its errors in NAME.log
part() {
    local name=$1 seconds=$2
    shift 2
    local start=$SECONDS left=$((limit - SECONDS))
    if ((left < 10)); then
        echo "$name: SKIPPED, no time left"
        failed=1
        return
    fi
    ((seconds < left)) || seconds=$left
    if timeout --kill-after=5 "$seconds" "$@" >"$out/$name" 2>"$out/$name.log"; then
        echo "$name: $((SECONDS - start)) s"
    else
        echo "$name: FAILED after $((SECONDS - start)) s: $(tail -n 1 "$out/$name.log")"
        failed=1
    fi
}

bench=("$python" -m hackmatrix bench)

{
    nvidia-smi 2>/dev/null
    "$python" -c 'import jax, sys; print(sys.version, jax.__version__, jax.devices())'
} >"$out/machine.txt" 2>&1

# The same games in both engines, whole states compared.
part lockstep.txt 90 "$python" - <<'PY'
import random
from lockstep_play import GAMES, any_action, play
from lockstep_starts import new, rich

rng = random.Random(0)
states = [(new if i % 2 else rich)(rng) for i in range(GAMES)]
print(dict(play(states, any_action, rng, 20)))
PY

for n in $envs; do
    part "env-$n.json" 60 "${bench[@]}" env --json --num-envs "$n" --num-steps "$steps" --repeats 3
done
best=$("$python" - "$out" <<'PY'
import json, pathlib, sys

found = [json.loads(p.read_text() or "{}") for p in pathlib.Path(sys.argv[1]).glob("env-*.json")]
print(max(found, key=lambda it: it.get("median", 0)).get("num_envs", 4096))
PY
)
for n in $train_envs; do
    part "train-$n.json" 90 "${bench[@]}" train --json --num-envs "$n" --num-steps "$steps" --repeats 3
done
part env-harder.json 60 "${bench[@]}" env --json --play harder --num-envs "$best" --num-steps "$steps"
part env-features.json 60 \
    "${bench[@]}" env --json --observation features --num-envs $((best < 65536 ? best : 65536)) \
        --num-steps "$steps"
part memory.json 90 "${bench[@]}" memory --json
part profile-env.txt 60 "$python" -m benchmarks.profile --num-envs "$best" --output "$out/profile-env"
part profile-train.txt 90 "$python" -m benchmarks.profile --what train --num-steps "$steps" \
    --output "$out/profile-train"

"$python" - "$out" <<'PY' | tee "$out/summary.txt"
import json
import pathlib
import sys

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    figures = json.loads(path.read_text() or "{}")
    shown = ("num_envs", "median", "min", "max", "fraction_of_limit", "peak_rss", "xla_temporary")
    print(path.stem, {name: figures[name] for name in shown if name in figures})
PY
echo "took $SECONDS s"
exit $failed
