"""HackMatrix's metrics of a training step; their table is in `metric_table.py`."""

import jax

from hackmatrix.environments.interface.environment import StepRecord
from hackmatrix.game.rules.actions import ACTION_NAMES, FIRST_PROGRAM, NUM_ACTIONS, SIPHON
from hackmatrix.game.rules.rewards import REWARD_PARTS

Measured = dict[str, jax.Array | tuple[jax.Array, jax.Array]]


def measure(step: StepRecord) -> Measured:
    """The values of one step by metric; see `Environment` for how they are used."""
    info, action = step.info, step.action
    parts = {f"reward/{part}": info["reward_parts"][i] for i, part in enumerate(REWARD_PARTS)}
    programs = {
        f"actions/program/{ACTION_NAMES[program]}": action == program
        for program in range(FIRST_PROGRAM, NUM_ACTIONS)
    }
    first_chance = step.mask[SIPHON] & ~step.previous_mask[SIPHON]
    return {
        **parts,
        "actions/move_frac": action < SIPHON,
        "actions/siphon_frac": action == SIPHON,
        "actions/program_frac": action >= FIRST_PROGRAM,
        **programs,
        "stats/highest_stage": info["stage"],
        "stats/mean_stage": info["stage"],
        "stats/win_rate": info["won"],
        "stats/mean_score": info["score"],
        "stats/programs_owned": info["programs_owned"],
        "stats/siphon_first_chance_frac": (first_chance & (action == SIPHON), first_chance),
    }
