"""Agents from files of params, computed with NumPy where that can.

Only networks other than the MLP on features that the Python engine makes load JAX, when they are
first asked.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from hackmatrix.agents.architectures import ARCHITECTURES
from hackmatrix.engine.observation import features
from hackmatrix.errors import UserError
from hackmatrix.page.agents import Agent, PolicyFunction
from hackmatrix.rules.actions import NUM_ACTIONS
from hackmatrix.rules.observation import FEATURE_SIZE
from hackmatrix.version import ENVIRONMENT_ID

if TYPE_CHECKING:
    from hackmatrix.runs.params import Exported

Make = Callable[[], Agent]
Features = Callable[[bytes], Sequence[float]]

# The layouts that the Python engine computes, by name; networks that read others load JAX.
FEATURES: dict[str, Features] = {
    "classic": partial(features, layout="classic"),
    "full": partial(features, layout="full"),
    "tactical": partial(features, layout="tactical"),
}


class Mlp(NamedTuple):
    """An MLP on features that the Python engine makes."""

    layers: list[tuple[Any, Any]]  # kernel and bias of each: the trunk's, logits, value
    layout: str  # of FEATURES
    activation: str  # relu or tanh


def from_file(path: Path, name: str) -> Make:
    """What loads the agent of a file of params, once; its errors are `UserError`."""
    lock, made = Lock(), list[Agent]()

    def make() -> Agent:
        with lock:  # two tabs may ask at once
            if not made:
                made.append(Agent(name, load(path)))
            return made[0]

    return make


def load(path: Path) -> PolicyFunction:
    """The policy of a file of params.

    Raises:
        UserError: the file is missing, damaged, or of another game.
    """
    from hackmatrix.runs.params import load_params

    exported = load_params(path)
    mlp = mlp_of(exported)
    if mlp is None:
        return _with_jax(exported.path)
    return partial(_mlp, mlp.layers, FEATURES[mlp.layout], mlp.activation)


def mlp_of(exported: "Exported") -> Mlp | None:
    """The MLP in a file of params; None for another network without memory.

    Raises:
        UserError: the file is of another game, or of a network with memory.
    """
    about = exported.about
    environment = about.get("environment", ENVIRONMENT_ID)
    if environment != ENVIRONMENT_ID:
        raise UserError(f"{exported.path}: plays {environment!s:.60}, not {ENVIRONMENT_ID}")
    settings = about.get("config") or {}
    layers = _mlp_layers(exported.params)
    architecture = ARCHITECTURES.get(settings.get("architecture", "mlp"))
    if architecture is not None and architecture.recurrent:
        raise UserError(f"{exported.path}: networks with memory can't be watched yet")
    layout = settings.get("observation") or _layout_of(layers)
    if layout not in FEATURE_SIZE:
        raise UserError(f"{exported.path}: reads {layout!s:.60}, which this version lacks")
    if layers is None or architecture != ARCHITECTURES["mlp"] or layout not in FEATURES:
        return None
    if FEATURE_SIZE[layout] != len(layers[0][0]):
        raise UserError(
            f"{exported.path}: reads {len(layers[0][0])} features, not those of {layout}"
        )
    return Mlp(layers, layout, settings.get("activation", "relu"))


def _layout_of(layers: list[tuple[Any, Any]] | None) -> str:
    """The layout that params without settings read; "full" where their shapes don't tell."""
    sizes = {size: layout for layout, size in FEATURE_SIZE.items()}
    return sizes.get(len(layers[0][0]), "full") if layers else "full"


def _mlp_layers(params: dict[str, Any]) -> list[tuple[Any, Any]] | None:
    """Kernel and bias of each layer, trunk first, then logits and value; None for no MLP."""
    layers = params.get("params", {})
    names = [f"Dense_{i}" for i in range(len(layers))]
    if len(names) < 3 or set(names) != set(layers):
        return None
    try:
        found = [(layers[name]["kernel"], layers[name]["bias"]) for name in names]
        *trunk, logits, value = found
        widths = [len(kernel) for kernel, _ in [*trunk, logits]]
        fits = all(k.shape == (w, len(b)) for (k, b), w in zip(trunk, widths, strict=False))
        fits &= [len(b) for _, b in trunk] == widths[1:]
        fits &= logits[0].shape == (widths[-1], NUM_ACTIONS) and len(logits[1]) == NUM_ACTIONS
        fits &= value[0].shape == (widths[-1], 1) and len(value[1]) == 1
    except (KeyError, TypeError, AttributeError):
        return None
    return found if fits else None


def _mlp(
    layers: list[tuple[Any, Any]],
    features_of: Features,
    activation: str,
    record: bytes,
    mask: Sequence[bool],
) -> tuple[Sequence[float], float]:
    """The forward pass of an MLP (`hackmatrix/agents/mlp.py`) in float32."""
    import numpy as np

    del mask
    *trunk, logits, value = layers
    hidden = np.asarray(features_of(record), np.float32)
    for kernel, bias in trunk:
        hidden = hidden @ kernel + bias
        hidden = np.tanh(hidden) if activation == "tanh" else np.maximum(hidden, 0)
    answer: list[float] = (hidden @ logits[0] + logits[1]).tolist()
    return answer, float((hidden @ value[0] + value[1])[0])


def _with_jax(path: Path) -> PolicyFunction:
    """The policy of any network without memory; JAX is loaded when it is first asked."""
    forward = cache(lambda: _forward(path))

    def answer(record: bytes, mask: Sequence[bool]) -> tuple[Sequence[float], float]:
        import numpy as np

        del mask
        logits, value = forward()(np.frombuffer(record, np.uint8)[None])
        return np.asarray(logits[0]).tolist(), float(value[0])

    return answer


def _forward(path: Path) -> Callable[[Any], Any]:
    """From records uint8[N, RECORD_SIZE] to logits and values."""
    import jax

    from hackmatrix.agents.policy import load_policy
    from hackmatrix.storage.compilation_cache import enable_compilation_cache

    enable_compilation_cache()
    policy = load_policy(path)
    _, network = policy.make()
    return jax.jit(lambda records: network(policy.params, records, ())[:2])
