"""Agents from files of params, computed with NumPy where that can.

Only networks that `agents/networks/numpy_forward.py` lacks load JAX, when they are first asked.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from hackmatrix.agents.networks.architectures import ARCHITECTURES, NetworkConfig
from hackmatrix.agents.roster.opinion import Agent, PolicyFunction, RecurrentPolicy
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.observation import FEATURE_SIZE

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


def load(path: Path) -> PolicyFunction | RecurrentPolicy:
    """The policy of a file of params.

    Raises:
        UserError: the file is missing, damaged, or of another game.
    """
    from hackmatrix.runs.params import load_params

    exported = load_params(path)
    mlp = mlp_of(exported)
    if mlp is None:
        return _other(exported)
    return partial(_mlp, mlp.layers, FEATURES[mlp.layout], mlp.activation)


def mlp_of(exported: "Exported") -> Mlp | None:
    """The MLP in a file of params; None for another network.

    Raises:
        UserError: the file is of another game, or of a network that this version lacks.
    """
    config, layout = _network_of(exported)
    layers = _mlp_layers(exported.params)
    if layers is None or config.architecture != "mlp" or layout not in FEATURES:
        return None
    if FEATURE_SIZE[layout] != len(layers[0][0]):
        raise UserError(
            f"{exported.path}: reads {len(layers[0][0])} features, not those of {layout}"
        )
    return Mlp(layers, layout, config.activation)


def _network_of(exported: "Exported") -> tuple[NetworkConfig, str]:
    """The network in a file of params, and the layout that it reads."""
    about = exported.about
    environment = about.get("environment", ENVIRONMENT_ID)
    if environment != ENVIRONMENT_ID:
        raise UserError(f"{exported.path}: plays {environment!s:.60}, not {ENVIRONMENT_ID}")
    settings = about.get("config") or {}
    layout = settings.get("observation") or _layout_of(_mlp_layers(exported.params))
    if layout not in FEATURE_SIZE:
        raise UserError(f"{exported.path}: reads {layout!s:.60}, which this version lacks")
    return NetworkConfig.read(exported.path.with_suffix(".json"), settings), layout


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
    """The forward pass of an MLP (`hackmatrix/agents/networks/mlp.py`) in float32."""
    import numpy as np

    del mask
    *trunk, logits, value = layers
    hidden = np.asarray(features_of(record), np.float32)
    for kernel, bias in trunk:
        hidden = hidden @ kernel + bias
        hidden = np.tanh(hidden) if activation == "tanh" else np.maximum(hidden, 0)
    answer: list[float] = (hidden @ logits[0] + logits[1]).tolist()
    return answer, float((hidden @ value[0] + value[1])[0])


def _other(exported: "Exported") -> PolicyFunction | RecurrentPolicy:
    """The policy of any network, with NumPy if there is a forward pass for that."""
    from hackmatrix.agents.networks.numpy_forward import forward_pass

    config, layout = _network_of(exported)
    step = _with_jax(exported.path)
    if layout in FEATURES and (forward := forward_pass(config, layout, exported.params)):
        step = partial(_step, forward, FEATURES[layout])
    if ARCHITECTURES[config.architecture].recurrent:
        return RecurrentPolicy(step)
    return lambda record, _: step(record, None)[:2]


def _step(
    forward: Any, features_of: Features, record: bytes, memory: Any
) -> tuple[Sequence[float], float, Any]:
    logits, value, memory = forward(features_of(record), memory)
    return logits.tolist(), value, memory


def _with_jax(path: Path) -> Callable[[bytes, Any], tuple[Sequence[float], float, Any]]:
    """What any network says, and its carry; JAX is loaded when it is first asked."""
    made = cache(lambda: _forward(path))

    def step(record: bytes, memory: Any) -> tuple[Sequence[float], float, Any]:
        import numpy as np

        forward, first = made()
        records = np.frombuffer(record, np.uint8)[None]
        logits, value, carry = forward(records, first if memory is None else memory)
        return np.asarray(logits[0]).tolist(), float(value[0]), carry

    return step


def _forward(path: Path) -> tuple[Callable[[Any, Any], Any], Any]:
    """From records uint8[N, RECORD_SIZE] and a carry to logits, values, carry; the first carry."""
    import jax

    from hackmatrix.agents.networks.network import encoded
    from hackmatrix.agents.networks.policy import load_policy
    from hackmatrix.core.compiled.compilation_cache import enable_compilation_cache

    enable_compilation_cache()
    policy = load_policy(path)
    _, network = policy.make()
    params = policy.params
    forward = jax.jit(lambda records, carry: network(params, encoded(network, records), carry))
    return forward, network.initial_carry(1)
