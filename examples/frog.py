"""A frog on a pond of 4 x 4 lily pads, as a game to be learned.

The frog hops up, down, left or right, and the pad that it leaves sinks. Each hop is worth 1. The
game ends where no pad floats beside the frog; it is won if there is none left at all.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from hackmatrix.environments.classic import SeenGames
from hackmatrix.environments.interface.environment import Step, StepRecord
from hackmatrix.environments.interface.metric import Metric, Over
from hackmatrix.environments.interface.report import Column, PlayedGames

WIDTH = 6  # of the pond: four pads, and water on both sides
PADS = jnp.pad(jnp.ones((4, 4), bool), 1).ravel()
HOPS = jnp.array([-WIDTH, WIDTH, -1, 1])  # up, down, left, right


class Pond(NamedTuple):
    """A game under way. Places are numbered row by row."""

    pads: jax.Array  # bool[36], where the frog can still hop to
    frog: jax.Array  # int32, the place of the frog


class Frog:
    """The rules. A player sees all of the pond, so it is the observation too."""

    num_actions = len(HOPS)
    feature_size = 2 * PADS.size
    never_truncates = True  # a game ends by itself
    metrics = (
        Metric("pond/won", Over.EPISODES, "fraction of games in which all pads sank"),
        Metric("pond/choices", Over.STEPS, "pads beside the frog, before it hops"),
    )

    def reset(self, key: jax.Array) -> tuple[Pond, Pond]:
        """Puts the frog on any pad."""
        frog = jax.random.choice(key, PADS.size, p=PADS / PADS.sum())
        pond = Pond(PADS.at[frog].set(False), frog)
        return pond, pond

    def step(self, key: jax.Array, pond: Pond, action: jax.Array) -> Step:
        """Hops. Where that ends the game, the next one begins."""
        frog = pond.frog + HOPS[action]
        after = Pond(pond.pads.at[frog].set(False), frog)
        ended = ~self.action_mask(after).any()
        _, first = self.reset(key)
        pond = jax.tree.map(lambda new, old: jnp.where(ended, new, old), first, after)
        info = {"final_observation": after, "won": ~after.pads.any()}
        return pond, pond, jnp.float32(1), ended, jnp.bool_(False), info

    def action_mask(self, pond: Pond) -> jax.Array:
        """bool[4], whether a pad floats there: neither water nor sunk."""
        return pond.pads[pond.frog + HOPS]

    def features(self, pond: Pond) -> jax.Array:
        """float32[72], the pads and the frog."""
        frog = jax.nn.one_hot(pond.frog, PADS.size)
        return jnp.concatenate([pond.pads, frog]).astype(jnp.float32)

    def imagination(self) -> SeenGames:
        """Made-up games, for an algorithm that searches."""
        return SeenGames(self, state_of=lambda seen: seen)

    def measure(self, step: StepRecord) -> dict[str, jax.Array]:
        """The metrics of one step, for training logs."""
        return {"pond/won": step.info["won"], "pond/choices": jnp.sum(step.mask)}

    def report(self, games: PlayedGames) -> list[Column]:
        """The columns of an evaluation besides return and length: a number of each of its games."""
        return [Column("games won", "win_rate", games.info["won"])]
