"""Crowded positions of later stages, made by the Python engine and loaded into a batch of games."""

import dataclasses
import random
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from hackmatrix.environments.hackmatrix import EnvState, HackMatrixEnv
from hackmatrix.game.engine import Game
from hackmatrix.game.engine.stage import begin_stage
from hackmatrix.game.engine.state import Enemy, State
from hackmatrix.game.rules.board import CELLS
from hackmatrix.game.rules.enemies import MAX_HP, EnemyType
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE, STAGE_INTERVAL

FIRST_RICH_STAGE = 3
RICH_ENEMIES = range(6, 15)
STREAM = 1 << 30  # stream of the first position; games that start at stage 1 have smaller ones


def rich_position(seed: int) -> State:
    """Position `seed` of harder play: stage 3 to 8 and 6 to 14 enemies."""
    rng = random.Random(seed)
    stage = rng.randint(FIRST_RICH_STAGE, LAST_STAGE)
    return crowded_position(seed, stage, rng.choice(RICH_ENEMIES))


def crowded_position(seed: int, stage: int, enemies: int) -> State:
    """The start of a stage with a number of enemies on the board and no transmissions.

    Args:
        seed: seed of the position.
        stage: 1..8.
        enemies: 0..32; they share cells only when no cell is free.
    """
    rng = random.Random(seed)
    state = Game.new(STREAM + seed).state
    state.stage = stage
    state.interval = STAGE_INTERVAL - stage
    state.transmissions = []
    begin_stage(state)
    state.transmissions, state.events = [], []
    state.player.credits = state.player.energy = rng.randint(5, 20)
    state.player.siphons = rng.randint(0, 2)
    state.owned = rng.sample(range(len(PROGRAMS)), rng.randint(2, 8))
    free = [c for c in range(CELLS) if not state.cells[c].is_block and c != state.player.cell]
    rng.shuffle(free)
    for place in range(enemies):
        kind = rng.choice(list(EnemyType))
        state.enemies.append(Enemy(kind, free[place % len(free)], MAX_HP[kind]))
    return state


def load(env: HackMatrixEnv, positions: Sequence[State], like: EnvState, games: int) -> EnvState:
    """The positions, repeated in turn, as the states of `games` games.

    Args:
        env: the environment.
        positions: states of the Python engine.
        like: states of the environment; supply the fields that are not part of the game.
        games: number of games.
    """
    turns = np.arange(games) % len(positions)
    loaded = jax.tree.map(
        lambda *leaves: jnp.asarray(np.stack(leaves)[turns]),
        *map(env.games.from_engine, positions),
    )
    rest = jax.tree.map(lambda leaf: jnp.array(leaf[:games], copy=True), like)
    return dataclasses.replace(rest, game=loaded)
