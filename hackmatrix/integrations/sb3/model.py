"""The model that is trained: a new one, or a saved one that goes on."""

import sys
import warnings
from pathlib import Path
from typing import Any

from gymnasium.spaces import Dict
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import HumanOutputFormat, Logger
from stable_baselines3.common.save_util import load_from_zip_file

from hackmatrix.core.errors import UserError
from hackmatrix.integrations.gymnasium.observation_spaces import layout_of
from hackmatrix.integrations.sb3.options import Sb3TrainOptions
from hackmatrix.learning.settings.config import MAX_SEED

# In place of what is in a saved model: functions of other versions may not load.
SCHEDULES = {"learning_rate": 0.0, "lr_schedule": None, "clip_range": 0.0}


def model_of(options: Sb3TrainOptions, env: Any) -> Any:
    """The `MaskablePPO` that the options name, on games that Stable-Baselines3 can step.

    Raises:
        UserError: the model to resume is missing, damaged, or of other games.
    """
    settings = options.of_algorithm()
    verbose = 2 if options.debug else 1 if options.info else 0
    if options.resume is None:
        policy = "MultiInputPolicy" if isinstance(env.observation_space, Dict) else "MlpPolicy"
        seed = options.seed % MAX_SEED
        with warnings.catch_warnings():  # a last minibatch that is smaller is no mistake
            warnings.filterwarnings("ignore", "You have specified a mini-batch size")
            model = MaskablePPO(policy, env, seed=seed, verbose=verbose, **settings)
    else:
        settings.pop("policy_kwargs")  # the network is the saved one
        model = _load(options.resume, env, settings)
        model.verbose = verbose
        model.set_random_seed(options.seed % MAX_SEED + model.num_timesteps)
    # Stable-Baselines3's own logger makes a folder among the temporary files, and leaves it.
    model.set_logger(Logger(None, [HumanOutputFormat(sys.stdout)] if verbose else []))
    return model


def _load(path: Path, env: Any, settings: dict[str, Any]) -> MaskablePPO:
    if not path.is_file():
        raise UserError(f"--resume {path}: there is no such file")
    try:
        seen = load_from_zip_file(path, custom_objects=SCHEDULES)[0]["observation_space"]
        if layout_of(seen) != layout_of(env.observation_space):
            raise ValueError(
                f"it observes {describe_space(seen)}, "
                f"here {describe_space(env.observation_space)} is observed; "
                "was it trained with another --preset or --observation?"
            )
        # The same numbers: other bounds are no reason to refuse it.
        ours = SCHEDULES | settings | {"observation_space": env.observation_space}
        return MaskablePPO.load(path, env=env, custom_objects=ours)
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise UserError(f"--resume {path}: not a model of this environment: {why}") from error


def describe_space(space: Any) -> str:
    """A space in few words."""
    return layout_of(space) or f"{space!s:.60}, which is no layout"
