#!/usr/bin/env bash
# Checks and measures the kernels of the native engine on a machine with an NVIDIA GPU, in one call.
#
# Needs a checkout with the native engine built, and a Python with jax[cuda12] or jax[cuda13], flax
# and optax; it needs no network and installs nothing.
#
#   scripts/bench_gpu.sh [FOLDER]      results go there (default: bench-gpu)
#
# PYTHON, ENVS (numbers of games to try), CONFIG (of the training), PARTS (a pattern of the parts to
# run) and LIMIT (seconds for all) can be set. If a part fails or takes longer than its share, its
# error is in its log and the others still run; parts for which no time is left are skipped. The
# exit code is 0 if all parts succeeded.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
mkdir -p "${1:-bench-gpu}"
out=$(cd "${1:-bench-gpu}" && pwd)
envs=${ENVS:-32768 262144 1048576}
config=${CONFIG:-further_gpu}
limit=${LIMIT:-470}
parts=${PARTS:-.}
export PYTHONPATH=.:tests/helpers${PYTHONPATH:+:$PYTHONPATH}
export XLA_PYTHON_CLIENT_PREALLOCATE=false # so that JAX and a profiler can share the device
failed=0

# part NAME SECONDS COMMAND...: its output in NAME, its errors in NAME.log
part() {
    local name=$1 seconds=$2
    shift 2
    [[ $name =~ $parts ]] || return
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
    tail -n 45 "$out/$name" | cut -c 1-160
}

# Each part compiles by itself unless it shares this cache: the first one tells what an empty one costs.
export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-$out/cache}

bench=("$python" -m hackmatrix bench)
lockstep=("$python" tests/helpers/cuda_lockstep.py)
update=("$python" -m benchmarks.kernels --config "$config")

part machine.txt 60 sh -c "nvidia-smi -L; $python -c 'import jax, sys; print(sys.version, jax.__version__, jax.devices())'"
part lockstep.txt 90 "${lockstep[@]}" --games 4096 --steps 500
part lockstep-scripted.txt 60 "${lockstep[@]}" --games 4096 --steps 200 --scripted
for n in $envs; do
    part "env-$n.txt" 60 "${bench[@]}" env --engine native --num-envs "$n" --repeats 3
done
part update.txt 90 "${update[@]}" --engine native
part update-graphs.txt 60 env XLA_FLAGS="--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUDNN,CUSTOM_CALL,WHILE --xla_gpu_graph_min_graph_size=2" "${update[@]}" --engine native
if command -v ncu >/dev/null; then
    part kernels.txt 90 ncu --clock-control none --kernel-name 'regex:^(step|tactical)$' --launch-skip 60 \
        --launch-count 2 --section SpeedOfLight --section MemoryWorkloadAnalysis --section Occupancy \
        --section WarpStateStats --section SchedulerStats --section InstructionStats \
        "${update[@]}" --engine native --repeats 1
fi
part update-jax.txt 240 "${update[@]}" --engine jax
echo "took $SECONDS s"
exit $failed
