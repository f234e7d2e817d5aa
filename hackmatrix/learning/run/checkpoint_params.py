"""The params in a checkpoint, as its run exports them; needs JAX only for normalised features."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from hackmatrix.runs.checkpoints import CheckedCheckpoint
from hackmatrix.runs.params import Exported, flat, params_from_arrays

# Before the names of a checkpoint's arrays.
_PARAMS, _AVERAGES, _SCALE = "params.", "averages.", "feature_scale."


def params_of(checkpoint: CheckedCheckpoint, arrays: Mapping[str, np.ndarray]) -> list[Exported]:
    """The params of each agent of a checkpoint, as its run would export them.

    Args:
        checkpoint: its facts and path.
        arrays: its arrays, see `hackmatrix.learning.run.keeper`.
    """
    facts = checkpoint.facts
    learned = _AVERAGES if any(name.startswith(_AVERAGES) for name in arrays) else _PARAMS
    agents = []
    for k in range(facts.num_agents):
        of_agent = {
            name: array if facts.num_agents == 1 else array[k]
            for name, array in arrays.items()
            if name.startswith((learned, _SCALE))
        }
        params = {n.removeprefix(learned): a for n, a in of_agent.items() if n.startswith(learned)}
        if f"{_SCALE}mean" in of_agent:
            params = _fold_normalisation(checkpoint.path, params, of_agent)
        about = {"format": 1, **facts.of_agent(k).as_json()}
        agents.append(params_from_arrays(checkpoint.path, params, about))
    return agents


def _fold_normalisation(
    path: Path, params: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The params with the feature normalisation in their first layer."""
    import jax.numpy as jnp

    from hackmatrix.agents.networks.normalisation import FeatureScale

    scale = FeatureScale(
        **{
            name.removeprefix(_SCALE): jnp.asarray(array)
            for name, array in arrays.items()
            if name.startswith(_SCALE)
        }
    )
    return dict(flat(scale.fold(params_from_arrays(path, params, {}).params)))
