"""The games of a session: one game and the variations that branch off it, as a tree of steps.

A game is its seed and its actions, so a node needs no state: only every few steps one is kept.
"""

from dataclasses import dataclass, field
from typing import Any, Self

from hackmatrix.core.errors import UserError
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.dice import Dice
from hackmatrix.game.engine.game import Outcome, new_game, step
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.engine.state import State
from hackmatrix.game.engine.undo import copy_state

MOST_NODES = 20_000
_KEPT = 16  # steps from one kept state to the next


@dataclass(slots=True)
class GameNode:
    """One position of the tree: that after `action` at the node `parent`."""

    index: int
    parent: int  # -1 at the root
    action: int  # -1 at the root
    by: str  # who took the action
    step: int  # actions since the start
    total: float  # sum of the rewards since the start
    stage: int
    over: str | None
    children: list[int] = field(default_factory=list)
    state: State | None = None  # kept in every few nodes


class Tree:
    """A game from its start, and all that was tried from its positions."""

    def __init__(self, game: GameId, start: State | None = None) -> None:
        """Begins at the start of a game, or at another position, which no replay leads to."""
        self.game = game
        self.is_game = start is None
        state = start or new_game(Dice(*game))
        self.nodes = [GameNode(0, -1, -1, "", 0, 0.0, state.stage, None, state=state)]
        self._newest = 0, state  # the last node that was made, from which most games go on

    @classmethod
    def of(cls, game: GameId, nodes: Any) -> Self:
        """A tree as it was kept: lists of parent, action and `by`, in the order of their numbers.

        Raises:
            UserError: it is no such list, or an action is not valid at its parent.
        """
        tree = cls(game)
        if not isinstance(nodes, list) or len(nodes) >= MOST_NODES:
            raise UserError(f"nodes: expected a list of fewer than {MOST_NODES}")
        for number, node in enumerate(nodes, 1):
            if _is_node(node, number) and node[1] in tree.valid_actions(node[0]):
                tree.play(*node)
            if len(tree.nodes) <= number:
                raise UserError(f"nodes: number {number} is no node, or can't be played there")
        return tree

    def valid_actions(self, index: int) -> list[int]:
        """Those at a node; none where the game is over."""
        return [] if self.nodes[index].over else valid_actions(self.state(index))

    def end(self, index: int) -> int:
        """The last node of the line through a node that was tried first."""
        while children := self.nodes[index].children:
            index = children[0]
        return index

    def state(self, index: int) -> State:
        """A copy of the state at a node."""
        actions = []
        node = self.nodes[index]
        while (kept := self._kept_state(node)) is None:
            actions.append(node.action)
            node = self.nodes[node.parent]
        state = copy_state(kept)
        for action in reversed(actions):
            step(state, action)
        state.events = []
        return state

    def _kept_state(self, node: GameNode) -> State | None:
        newest, state = self._newest
        return state if node.index == newest else node.state

    def last(self, index: int) -> tuple[State, Outcome] | None:
        """The state before a node's action and what the action did; None at the root."""
        node = self.nodes[index]
        if node.parent < 0:
            return None
        before = self.state(node.parent)
        return before, step(copy_state(before), node.action)

    def play(self, index: int, action: int, by: str) -> GameNode:
        """The node after a valid action; one that is there already is not made again.

        Raises:
            UserError: the tree is full.
        """
        node = self.nodes[index]
        for child in node.children:
            if self.nodes[child].action == action:
                return self.nodes[child]
        if len(self.nodes) >= MOST_NODES:
            raise UserError(f"a session holds at most {MOST_NODES} positions: start a new game")
        state = self.state(index)
        outcome = step(state, action)
        state.events = []
        added = GameNode(
            index=len(self.nodes),
            parent=index,
            action=action,
            by=by,
            step=node.step + 1,
            total=node.total + outcome.reward,
            stage=state.stage,
            over=state.over.value if state.over else None,
            state=state if (node.step + 1) % _KEPT == 0 else None,
        )
        self.nodes.append(added)
        self._newest = added.index, state
        node.children.append(added.index)
        return added

    def line(self, index: int) -> tuple[int, ...]:
        """The actions from the start to a node."""
        actions = []
        while (node := self.nodes[index]).parent >= 0:
            actions.append(node.action)
            index = node.parent
        return tuple(reversed(actions))


def _is_node(node: Any, num_nodes: int) -> bool:
    if not isinstance(node, list) or list(map(type, node)) != [int, int, str]:
        return False
    return 0 <= node[0] < num_nodes and len(node[2]) <= 200
