# Every target makes .venv itself where it is missing or out of date; `make PYTHON=... setup` chooses
# the interpreter, `make train FLAGS=...` adds flags to a command. `make` alone lists the targets.

BIN := .venv/bin
BENCH := .venv-bench
PLAY := .venv-play
TARGETS := .venv-targets
READY := .venv/.ready
LOCK := uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
    --no-header --no-emit-index-url --no-emit-find-links
# JavaScript's tools are npm's, at these versions; without npm, and in CI, JavaScript goes unchecked.
BIOME := npx --yes @biomejs/biome@2.6.8
TSC := npx --yes --package typescript@7.0.2 tsc
NO_NPM := [ -n "$$HACKMATRIX_CI" ] || ! command -v npx >/dev/null && \
    echo "JavaScript goes unchecked: there is no npm, or this is CI"
DEVICES := $(if $(shell command -v nvidia-smi),,--num-devices 2)
RUN := make-train-$(shell date +%Y%m%d-%H%M%S)

MARKS := not slow and not thorough
WORKERS := 2

# The suite starts a hundred processes: each would compile all of Python's modules that it imports.
unexport PYTHONDONTWRITEBYTECODE

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "%-8s %s\n", $$1, $$2 }' Makefile

setup: $(READY)  ## make .venv with everything needed to run, test and develop

play:  ## the game in your browser, from .venv or a small environment of its own
	@if [ -e $(READY) ]; then $(BIN)/hackmatrix play $(FLAGS); else \
	    $(MAKE) --no-print-directory $(PLAY)/.ready && $(PLAY)/bin/hackmatrix play $(FLAGS); fi

train: $(READY)  ## train an agent for five minutes and evaluate it beside random play
	$(BIN)/hackmatrix train --config fast --total-timesteps 36_000_000 $(DEVICES) \
	    --run-name $(RUN) --checkpoint-dir runs $(FLAGS)
	$(BIN)/hackmatrix evaluate random runs/$(RUN)
	@echo "see it play: $(BIN)/hackmatrix watch runs/$(RUN)"

test: $(READY)  ## the quick test suite, a few minutes
	$(BIN)/pytest -m "$(MARKS)" -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# On two cores the third worker works where a test of the others waits.
thorough: $(READY)  ## tests that take longer: several processes, kills, whole trainings, more screens
	$(BIN)/pytest -m "thorough and not slow" -n 3 --dist loadfile --no-loadscope-reorder

commands: $(READY)  ## each command of the documents once, as a user runs it, in its smallest size
	$(BIN)/pytest tests/commands -m "not slow" -n 3 --dist worksteal

slow: $(READY)  ## the full, long test suites
	$(BIN)/pytest -m "slow or thorough" --override-ini "norecursedirs=.*"  # tests/commands too

fuzz: $(READY)  ## a minute of damaged states and records for the native engine, under sanitizers
	$(BIN)/python tests/helpers/native_fuzz.py --seconds 60 $(FLAGS)

format: $(READY)  ## put style and format right
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	@$(NO_NPM) || $(BIOME) check --write

lint: $(READY)  ## style, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@$(NO_NPM) || { $(BIOME) check && $(TSC) --project .; }

docs: $(READY)  ## the documentation as a site in build/site; with npm, the game is on it
	rm -rf build/site build/game
	@if command -v npm >/dev/null; then \
	    npm install --silent --no-save --prefix build/npm pyodide && \
	    $(BIN)/hackmatrix page --export build/game/play --pyodide build/npm/node_modules/pyodide; \
	else echo "docs: npm is not installed, so the site is without the game"; fi
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs build/site

bench: $(BENCH)/.ready  ## speed beside environments of other libraries, which go into .venv-bench
	$(BENCH)/bin/python -m benchmarks.peers $(FLAGS)

classic: $(READY)  ## learning curves of classic control over ten seeds, next to published ones
	$(BIN)/python -m benchmarks.classic $(FLAGS)

targets: $(TARGETS)/.ready  ## compilers for TPUs and NVIDIA's GPUs, which go into .venv-targets

sb3: $(READY)  ## Stable-Baselines3 with torch for CPUs, into .venv; then its tests run too
	$(BIN)/pip install torch==2.13.0
	$(BIN)/pip install --editable '.[sb3]'

lock:  ## write both locks anew (needs uv; LOCK_FLAGS=--upgrade takes the newest versions)
	$(LOCK) --extra all --group dev --output-file requirements.lock $(LOCK_FLAGS)
	$(LOCK) --extra bench --constraint requirements.lock --no-annotate \
	    --output-file requirements-bench.lock $(LOCK_FLAGS)

clean:  ## remove .venv and caches; runs stay
	rm -rf .venv .venv-bench .venv-play .venv-targets .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	rm -f hackmatrix/game/native/*.so
	find benchmarks hackmatrix tests -name __pycache__ -exec rm -rf {} +

# Written last, so that an interrupted setup is not taken for a finished one.
$(READY): pyproject.toml requirements.lock hatch_build.py $(wildcard hackmatrix/game/native/*.?pp)
	@rm -f $@
	@.ci/setup $(PYTHON)
	@touch $@

# Apart and small, because playing needs neither JAX nor the tools.
$(PLAY)/.ready: pyproject.toml hatch_build.py $(wildcard hackmatrix/game/native/*.?pp)
	@rm -f $@
	@SETUP_VENV=$(PLAY) SETUP_LOCK= .ci/setup $(PYTHON)
	@touch $@

# Apart, because the tests need none of it, and it is as large again.
$(BENCH)/.ready: requirements-bench.lock
	@rm -f $@
	@SETUP_VENV=$(BENCH) SETUP_LOCK=requirements-bench.lock .ci/setup $(PYTHON)
	@touch $@

# Apart, because with libtpu JAX looks for a TPU each time it starts; all else is that of .venv.
$(TARGETS)/.ready: $(READY)
	@rm -rf $(TARGETS)
	@$(BIN)/python -m venv $(TARGETS)
	@$(BIN)/python -c "import site; print(f'import site; site.addsitedir({site.getsitepackages()[0]!r})')" \
	    > $$($(TARGETS)/bin/python -c "import site; print(site.getsitepackages()[0])")/venv.pth
	@$(TARGETS)/bin/pip install --quiet "jax[tpu,cuda12-local]==$$($(BIN)/python -c 'import jax; print(jax.__version__)')"
	@sed "1s|.*|#!$(abspath $(TARGETS))/bin/python|" $(BIN)/hackmatrix > $(TARGETS)/bin/hackmatrix
	@chmod +x $(TARGETS)/bin/hackmatrix
	@touch $@

.PHONY: help setup play train test thorough commands slow fuzz format lint docs bench classic targets sb3 lock clean
