"""Caches compiled programs on disk, so that only the first run waits for the compiler."""

import os
from pathlib import Path

import jax


def enable_compilation_cache() -> None:
    """Caches compiled programs in the user's cache folder, or in `JAX_COMPILATION_CACHE_DIR`.

    An empty `JAX_COMPILATION_CACHE_DIR`, or a folder that can't be written, disables the cache.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = home / "hackmatrix" / "jax"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return
        if not os.access(folder, os.W_OK):
            return
        jax.config.update("jax_compilation_cache_dir", str(folder))
    # By default JAX keeps only programs that took a second to compile; a run compiles many small
    # ones.
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    if "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES" not in os.environ:
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
