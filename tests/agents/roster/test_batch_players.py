"""Built-in players choose as they promise."""

import jax.numpy as jnp
import numpy as np

from hackmatrix.agents.roster.batch_players import exit_player
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.game.rules.observation import BYTE, RECORD_SIZE, RESOURCE


def test_the_exit_player_goes_down_the_distances() -> None:
    made = np.zeros((4, RECORD_SIZE), np.uint8)
    mask = np.zeros((4, NUM_ACTIONS), bool)
    made[:, BYTE["cell"]] = [0, 0, 14, 35]
    mask[0, [0, 3]] = mask[1, [0, 3]] = mask[2, :4] = True
    mask[3, [9, 12]] = True  # walled in
    made[:, RESOURCE : RESOURCE + 36] = 10 << 4 | 7  # distance 10, some resources
    made[0, RESOURCE + 6] = 4 << 4  # up of cell 0
    made[1, RESOURCE + 1] = 4 << 4 | 15  # right of cell 0
    made[2, RESOURCE + 8] = 2 << 4  # down of cell 14
    player = exit_player()
    chosen, carry = player.choose((), (), jnp.asarray(made), jnp.asarray(mask), jnp.zeros(4))
    assert chosen.tolist() == [0, 3, 1, 9]
    assert carry == ()
