"""The kernels for NVIDIA's GPUs on a CPU: NVRTC's PTX as C++, behind the handlers that launch them.

`python tests/helpers/cuda_on_cpu.py FOLDER` builds it; a process with the folder in LD_LIBRARY_PATH
then plays by the kernels after `install(FOLDER)`, which comes before the native engine is imported.
"""

import ctypes
import os
import shlex
import subprocess
import sys
from pathlib import Path

import jax
import ptx

from hackmatrix.game.native import _native, constants, cuda

HELPERS = Path(__file__).parent
ENGINE = Path(cuda.__file__).parent
CAPABILITY = "80"  # the PTX of a newer one may use what `ptx.py` does not know
FLAGS = ("-std=c++17", "-O1", "-fno-strict-aliasing", "-ffp-contract=off", "-fPIC", "-shared")


def build(folder: Path) -> None:
    """Compiles the driver and the handlers into a folder."""
    image = cuda.find_nvrtc().compile(f"compute_{CAPABILITY}")
    (folder / "kernels.ptx").write_bytes(image)
    (folder / "kernels.cpp").write_text(ptx.cplusplus(image.rstrip(b"\0").decode()))
    constants.write(folder)
    driver = [f'-DKERNELS="{folder / "kernels.cpp"}"', "cuda_driver.cpp"]
    handlers = [
        f"-I{ENGINE}",
        f"-I{folder}",
        f"-isystem{jax.ffi.include_dir()}",
        "cuda_handlers.cpp",
    ]
    for name, arguments in {"libcuda.so.1": driver, "handlers.so": handlers}.items():
        command = [
            *shlex.split(os.environ.get("CXX", "c++")),
            *FLAGS,
            *arguments,
            "-o",
            str(folder / name),
        ]
        subprocess.run(command, check=True, cwd=HELPERS)


def install(folder: Path) -> None:
    """From now on the native engine's custom calls on CPUs are those for GPUs.

    Raises:
        RuntimeError: the driver does not take the kernels.
    """
    if "hackmatrix.game.native.xla" in sys.modules:
        raise RuntimeError("install() comes before what imports the native engine's custom calls")
    library = ctypes.CDLL(str(folder / "handlers.so"))
    library.load.restype, library.handler_of.restype = ctypes.c_char_p, ctypes.c_void_p
    if why := library.load((folder / "kernels.ptx").read_bytes()):
        raise RuntimeError(why.decode())
    for name in _native.XLA_HANDLERS:
        if (handler := library.handler_of(name.encode())) is None:
            continue  # a call that GPUs do not have
        _native.XLA_HANDLERS[name] = jax.ffi.pycapsule(ctypes.c_void_p(handler))


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve())
