"""The game in Gymnasium: `gymnasium.make("HackMatrix-v1")` and `gymnasium.make_vec`.

Importing this module makes the environment known to Gymnasium; so does `import hackmatrix`, before
or after `import gymnasium`. The environments themselves are imported when they are made.
"""

from gymnasium.envs.registration import register as _register
from gymnasium.envs.registration import registry

from hackmatrix.core.version import ENVIRONMENT_ID


def register() -> None:
    """Makes the environment known to Gymnasium, unless it is."""
    if ENVIRONMENT_ID not in registry:
        _register(
            ENVIRONMENT_ID,
            entry_point="hackmatrix.integrations.gymnasium.game:GameEnv",
            vector_entry_point="hackmatrix.integrations.gymnasium.vector:GameVectorEnv",
        )


register()
