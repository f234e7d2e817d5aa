"""The native engine on NVIDIA's GPUs: `kernels.cu`, compiled by NVRTC for the device.

NVRTC comes with `jax[cuda12]` and `jax[cuda13]`. The code for a device (a cubin) is kept in the
folder of compiled programs.
"""

import ctypes
import hashlib
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jax

from hackmatrix.core.compiled import cache_folder
from hackmatrix.core.files import write_atomically
from hackmatrix.core.processes import python_module
from hackmatrix.game.native import _native, constants

OPTIONS = (
    "--std=c++17",
    "-default-device",
    "--fmad=false",  # each operation is rounded, as on CPUs
)
_FOLDER = Path(__file__).parent
_STANDARD = {
    *("algorithm", "array", "cmath", "cstddef", "cstdint", "cstdlib", "cstring"),
    *("initializer_list", "iterator", "numeric", "type_traits"),
}
_LIBRARIES = ("libnvrtc.so.13", "libnvrtc.so.12")


class CudaError(RuntimeError):
    """The kernels can't be compiled or loaded; the text says why in a line."""


@cache
def register() -> None:
    """Makes the custom calls of `xla.py` known to JAX's GPUs.

    Raises:
        CudaError: NVRTC or the driver is missing or fails, the GPUs are not NVIDIA's, or what was
            compiled for them plays wrong.
    """
    try:
        device: Any = jax.devices("cuda")[0]  # those beside it are alike: else JAX warns
    except RuntimeError:
        raise CudaError("it is none of NVIDIA's") from None
    capability = device.compute_capability.replace(".", "")
    # A kept file that the driver does not take, such as a damaged one, is compiled anew.
    why = _native.load_kernels(cubin(capability))
    if why and (why := _native.load_kernels(cubin(capability, anew=True))):
        raise CudaError(why)
    register_handlers()


def register_handlers() -> None:
    """Names the handlers to JAX, which can compile for them; to run they need kernels loaded."""
    for name, handler in _native.CUDA_HANDLERS.items():
        stages = {"initialize": _native.CUDA_INITIALIZERS[name], "execute": handler}
        jax.ffi.register_ffi_target(f"hackmatrix_{name}", stages, platform="CUDA")


def cubin(capability: str, *, anew: bool = False) -> bytes:
    """The kernels for devices of a compute capability such as "90", as kept or newly compiled.

    For a device that is newer than NVRTC it is PTX, which the driver compiles. What is new is kept
    once it has played some games right (`cuda_check.py`).

    Args:
        capability: of the devices.
        anew: whether to compile them even if they are kept.

    Raises:
        CudaError: NVRTC is missing or fails, or what it makes plays wrong.
    """
    nvrtc = find_nvrtc()
    made_from = (capability, nvrtc.version(), OPTIONS, sorted(sources().items()))
    path = _path_of(hashlib.sha256(repr(made_from).encode()).hexdigest())
    if path is not None and path.exists() and not anew:
        return path.read_bytes()
    supported = nvrtc.capabilities()
    older = [other for other in supported if int(other) <= int(capability)] or supported[:1]
    exact = capability in supported
    image = nvrtc.compile(f"sm_{capability}" if exact else f"compute_{max(older, key=int)}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernels")
        file.write_bytes(image)
        command = python_module("hackmatrix.game.native.cuda_check", str(file))
        checked = subprocess.run(command, capture_output=True, text=True)
    if checked.returncode:
        lines = (checked.stdout or checked.stderr).strip().splitlines() or ["no reason given"]
        version = ".".join(map(str, nvrtc.version()))
        raise CudaError(f"what NVRTC {version} compiled does not play right: {lines[-1]}")
    if path is not None:
        with suppress(OSError):  # a full disk is no reason not to play
            write_atomically(path, image, mode=0o600)
    return image


def _path_of(key: str) -> Path | None:
    """The file of a cubin among the compiled programs of the user; None if none are kept."""
    named = jax.config.values["jax_compilation_cache_dir"]
    folder = cache_folder.default_folder() if named is None else cache_folder.local(named)
    if folder is None or not cache_folder.make(folder):
        return None
    return cache_folder.kernel_path(folder, key)


def sources() -> dict[str, str]:
    """The texts to compile by name: `kernels.cu` and the headers that it includes."""
    files = (*_FOLDER.glob("*.hpp"), _FOLDER / "kernels.cu")
    standard = dict.fromkeys(_STANDARD, '#include "cuda_std.hpp"\n')
    texts = {path.name: path.read_text() for path in files}
    return {**standard, **texts, "rules.hpp": constants.header()}


class Nvrtc:
    """NVIDIA's compiler at run time, a library with an interface in C."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def version(self) -> tuple[int, int]:
        """Major and minor."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("Version", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def capabilities(self) -> list[str]:
        """Those of the devices that it makes a cubin for."""
        count = ctypes.c_int()
        self._call("GetNumSupportedArchs", ctypes.byref(count))
        architectures = (ctypes.c_int * count.value)()
        self._call("GetSupportedArchs", architectures)
        return [str(architecture) for architecture in architectures]

    def compile(self, architecture: str) -> bytes:
        """The kernels as a cubin for "sm_90", say, as PTX with a 0 at its end for "compute_90".

        Raises:
            CudaError: it does not compile; the first error is in the text.
        """
        headers = sources()
        source, name = headers.pop("kernels.cu").encode(), b"kernels.cu"
        count, program = len(headers), ctypes.c_void_p()
        texts = (ctypes.c_char_p * count)(*(text.encode() for text in headers.values()))
        names = (ctypes.c_char_p * count)(*(name.encode() for name in headers))
        self._call("CreateProgram", ctypes.byref(program), source, name, count, texts, names)
        flags = [flag.encode() for flag in (*OPTIONS, f"-arch={architecture}")]
        try:
            if self._library.nvrtcCompileProgram(
                program, len(flags), (ctypes.c_char_p * len(flags))(*flags)
            ):
                raise CudaError(f"NVRTC does not compile the kernels: {self._log(program)}")
            return self._result("CUBIN" if architecture.startswith("sm") else "PTX", program)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _log(self, program: ctypes.c_void_p) -> str:
        text = self._result("ProgramLog", program).rstrip(b"\0").decode(errors="replace")
        return next((line for line in text.splitlines() if "error" in line), text.strip())

    def _result(self, item: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"Get{item}Size", program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(f"Get{item}", program, content)
        return content.raw

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, f"nvrtc{name}")(*arguments)
        if code:
            raise CudaError(f"NVRTC failed ({name}: error {code})")


def find_nvrtc() -> Nvrtc:
    """The library, of NVIDIA's Python packages or of the system.

    Raises:
        CudaError: it is not there.
    """
    for name in _LIBRARIES:
        for folder in sys.path:
            for path in sorted(Path(folder or ".").glob(f"nvidia/*/lib/{name}")):
                for part in path.parent.glob("libnvrtc-builtins.so.*"):
                    ctypes.CDLL(str(part))  # NVRTC looks for it where the system has libraries
                return Nvrtc(ctypes.CDLL(str(path)))
    for name in _LIBRARIES:
        try:
            return Nvrtc(ctypes.CDLL(name))
        except OSError:
            continue
    raise CudaError(
        "NVRTC, which compiles its kernels, is missing: jax[cuda12] and jax[cuda13] bring it"
    )
