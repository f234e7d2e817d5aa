"""The game in C++ for CPUs: the files of `engine/`, without JAX and without waiting for a compiler.

`docs/native-engine.md` says how it is laid out. It is left out where no C++ compiler was there at
the installation: `available` tells.
"""

from importlib.util import find_spec

available = find_spec("hackmatrix.game.native._native") is not None
