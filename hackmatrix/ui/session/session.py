"""A session: one player or watcher with a game, its variations and perhaps an agent.

It answers messages, JSON objects with the field `do`, with JSON objects. It is plain Python, knows
nothing of servers, and imports neither JAX nor NumPy.
"""

import random
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, ClassVar

from hackmatrix.agents.roster.judge import Judge, Odds, odds_of
from hackmatrix.agents.roster.opinion import Agent, Opinion, RecurrentPolicy, opinion
from hackmatrix.core.errors import UserError
from hackmatrix.core.version import ENVIRONMENT_ID
from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.engine.observation import observe, observe_saved
from hackmatrix.game.engine.replay import GameId, Replay
from hackmatrix.game.engine.state import State
from hackmatrix.game.rules.actions import NUM_ACTIONS
from hackmatrix.ui.session.descriptions import ending, why_not
from hackmatrix.ui.session.lessons import LESSONS, progress
from hackmatrix.ui.session.position_data import facts_of, facts_of_action
from hackmatrix.ui.session.puzzles import Puzzle, load
from hackmatrix.ui.session.review import (
    MOST_STEPS,
    future,
    ghost,
    hits_taken,
    odds_at,
    play_out,
    review_move,
)
from hackmatrix.ui.session.variations import GameNode, Tree

YOU = "you"
_AT_ONCE = 100  # steps that one message may play
_BRIEFED = 1_000  # nodes of which an agent is asked at once
_REVIEWED = 20  # moves that one message may have reviewed
_FUTURES = 16  # games that one message may have made up
_FINISHED = 25  # games that one message may have played to their end, where they go together
_TUTORIAL = GameId(0)
_SEEDS = 1_000_000  # new games are among so many

Message = dict[str, Any]


class Session:
    """A game and what was tried in it; `handle` is all there is to it."""

    does: ClassVar[tuple[str, ...]] = (  # the messages, each a method
        *("hello", "new", "act", "agent", "go", "control", "others", "review", "futures"),
        *("finish", "hidden", "lesson", "puzzle", "ghost", "compare", "save", "load", "resume"),
    )
    task: Callable[[], Message] | None  # what is to be done: of a room of the tutorial, a puzzle

    def __init__(
        self,
        game: GameId | None = None,
        agents: Mapping[str, Callable[[], Agent]] | None = None,
        *,
        greedy: bool = False,
        episodes: int = 1,
        start: Replay | None = None,
        judge: Callable[[], Judge] | None = None,
        playing: bool = False,
    ) -> None:
        """Begins with a game.

        Args:
            game: the first one; a random one if not given.
            agents: what makes each agent, by name; the first is at the controls. Without agents it
                is a session for playing, in which nothing hidden is ever sent.
            greedy: agents take their most probable action instead of sampling one.
            episodes: how many games the page plays one after the other.
            start: a replay to begin with instead.
            judge: makes what says the odds of each position while watching and reviews games.
            playing: nobody is at the controls until a message gives them to an agent.
        """
        self.agents = agents or {}
        self.playing = playing or not self.agents
        self.controls = None if playing else next(iter(self.agents), None)
        self.greedy = greedy
        self.episodes = episodes
        self.reveal = False
        self.judge = judge
        self.is_given = game is not None or start is not None
        self.notify: Callable[[], object] = lambda: None  # of changes that no message here made
        self._open(game or _random_game())
        if start is not None:
            self._load(start)

    def handle(self, message: Any) -> Message:
        """Answers a message; one that can't be done is answered by `{"error": ...}`."""
        try:
            if not isinstance(message, dict):
                raise UserError("a message is an object")
            name = message.get("do")
            if not isinstance(name, str) or name not in self.does:
                raise UserError(f"do: expected one of {', '.join(self.does)}")
            answer: Message = getattr(self, name)(message)
            return answer
        except UserError as error:
            return {"error": str(error)}

    # --- what messages do ------------------------------------------------------------------------

    def hello(self, _: Message) -> Message:
        """The position, and what the page needs to know once."""
        about = {
            "environment": ENVIRONMENT_ID,
            "agents": list(self.agents),
            "episodes": self.episodes,
            "given": self.is_given,
            "playing": self.playing,
            "reviews": self.judge is not None,
        }
        return self._position(fresh=True) | {"about": about}

    def new(self, message: Message) -> Message:
        """A new game: of `seed`, else the next one to watch, or a random one to play."""
        seed = message.get("seed", "")
        if not isinstance(seed, str):
            raise UserError("seed: expected text")
        if seed:
            self._open(GameId.read(seed))
        elif not self.playing:
            stream, episode = self.tree.game
            self._open(GameId(stream, (episode + 1) % 2**32))
        else:
            self._open(_random_game())
        if self.playing:
            self._leave()
        return self._position(fresh=True)

    def act(self, message: Message) -> Message:
        """Takes an action by hand; another than the one taken before branches off a variation."""
        action = _integer(message, "action", NUM_ACTIONS)
        state = self.tree.state(self.at)
        if state.over or action not in valid_actions(state):
            raise UserError(why_not(state, action))
        return self._answer_play([self._play(action, YOU)])

    def agent(self, message: Message) -> Message:
        """Lets the agent play `steps` actions (1), at most to the game's end."""
        steps = _integer(message, "steps", _AT_ONCE + 1) if "steps" in message else 1
        name = self._agent().name
        nodes = []
        for _ in range(steps):
            node = self._node()
            if node.over or node.step >= MOST_STEPS:
                break
            nodes.append(self._play(self._choice(), name))
        return self._answer_play(nodes)

    def go(self, message: Message) -> Message:
        """Shows the position at `node`."""
        self.at = _integer(message, "node", len(self.tree.nodes))
        return self._position()

    def control(self, message: Message) -> Message:
        """Gives the controls to another `agent`; answers with its opinions of all positions.

        While playing, null takes them back, and no agent's opinion is shown.
        """
        if self.playing and "agent" in message and message["agent"] is None:
            self._leave()
            return self._position()
        if not self.tree.is_game:
            raise UserError("no agent plays the rooms of the tutorial")
        name = self._name_of_agent(message)
        self.agents[name]()  # it may be refused before anything changes
        self.controls = name
        self.opinions.clear()
        return self._position() | {"opinions": self._briefs(), "odds": self._all_odds()}

    def review(self, message: Message) -> Message:
        """Reviews the actions that led to `nodes`: for each its number, the agent's, the cost."""
        judge, moves = self._judge(), []
        for node_index in self._nodes(message, _REVIEWED):
            node = self.tree.nodes[node_index]
            if node.parent < 0:
                raise UserError("nodes: the first position has no action")
            seed = f"{self.tree.game} {node.parent}"
            found = review_move(judge, self.tree.state(node.parent), node.action, seed)
            moves.append([node_index, found.best, round(found.cost, 4)])
        return {"moves": moves}

    def futures(self, message: Message) -> Message:
        """How the game may go on after an `action`: trails of the player, and their ends."""
        action, state = _integer(message, "action", NUM_ACTIONS), self.tree.state(self.at)
        if state.over or action not in valid_actions(state):
            raise UserError(why_not(state, action))
        judge, seed = self._judge(), f"{self.tree.game} {self.at} {action}"
        return {"futures": [future(judge, state, action, f"{seed} {i}") for i in range(_FUTURES)]}

    def finish(self, message: Message) -> Message:
        """How games that the packaged agent plays on end: won or not, and stages cleared.

        They are counted from `first` (0), so that other messages can ask for others. It is at most
        `games`, and a single one where each has to be played alone.
        """
        games = _integer(message, "games", _FINISHED + 1)
        first = _integer(message, "first", 10_000) if "first" in message else 0
        judge, state, seed = self._judge(), self.tree.state(self.at), f"{self.tree.game} {self.at}"
        games = games if judge.play_together else min(games, 1)
        seeds = [f"{seed} {number}" for number in range(first, first + games)]
        return {"finished": play_out(judge, state, seeds)}

    def others(self, message: Message) -> Message:
        """Every agent's choice here, or that of one `agent`; and what a search tried."""
        names = [self._name_of_agent(message)] if "agent" in message else list(self.agents)
        if self._node().over:
            return {"others": [], "branches": []}
        choices, branches = [], list[list[Any]]()
        for name in names:
            view = self._ask(self.agents[name](), self.at)
            best = view.best
            choices.append([name, best, view.probabilities[best], view.value])
            branches += self._branches(name, view)
        return {"others": choices, "branches": branches}

    def hidden(self, message: Message) -> Message:
        """Shows what is hidden from the player, or no longer; only while watching."""
        if not self.controls:
            raise UserError("what is hidden can only be shown while watching")
        self.reveal = message.get("show") is True
        return self._position()

    def lesson(self, message: Message) -> Message:
        """Opens room `number` of the tutorial."""
        number = _integer(message, "number", len(LESSONS))
        self._open(_TUTORIAL, LESSONS[number].start())
        self._leave()
        self.task = lambda: progress(number, self.tree.state(self.at))
        return self._position(fresh=True)

    def puzzle(self, message: Message) -> Message:
        """Opens puzzle `number`, else that nearest to `rating` of those not in `done`."""
        puzzles = load_packaged_puzzles()
        if "number" in message:
            index = _integer(message, "number", len(puzzles))
        else:
            rating, done = _integer(message, "rating", 10_000), message.get("done")
            solved = {n for n in done if isinstance(n, int)} if isinstance(done, list) else set()
            left = set(range(len(puzzles))) - solved or set(range(len(puzzles)))
            index = min(left, key=lambda n: abs(puzzles[n].rating - rating))
        puzzle = puzzles[index]
        self._load(Replay(puzzle.game, puzzle.actions))
        self._leave()
        here = self.at
        self.task = lambda: puzzle.progress(index, len(puzzles), self._after(here))
        return self._position(fresh=True)

    def ghost(self, _: Message) -> Message:
        """The same game as the packaged agent plays it: `places`, whether it `won`, and so on."""
        if not self.tree.is_game:
            raise UserError("no agent plays the rooms of the tutorial")
        found = ghost(self._judge(), self.tree.game)
        facts = {"won": found.won, "score": found.score, "hits": found.hits}
        return {"places": found.path} | facts

    def compare(self, _: Message) -> Message:
        """Adds the packaged agent's game, and shows where it leaves the others; its `line`."""
        if not self.tree.is_game:
            raise UserError("no agent plays the rooms of the tutorial")
        judge, before = self._judge(), len(self.tree.nodes)
        line = [0]
        for action in ghost(judge, self.tree.game).actions:
            line.append(self.tree.play(line[-1], action, judge.agent.name).index)
        self.at = [number for number in line if number < before][-1]
        return self._answer_play(self.tree.nodes[before:]) | {"line": line}

    def save(self, _: Message) -> Message:
        """The line that is shown, from its start to its end, as a replay."""
        if not self.tree.is_game:
            raise UserError("a room of the tutorial is no game to save")
        return {"replay": Replay(self.tree.game, self.tree.line(self.tree.end(self.at))).as_json()}

    def load(self, message: Message) -> Message:
        """Opens a `replay`, at its end or at `step`."""
        replay = Replay.of_json(message.get("replay"))
        step = message.get("step", len(replay.actions))
        if type(step) is not int or not 0 <= step <= len(replay.actions):
            raise UserError(f"step: expected 0..{len(replay.actions)}")
        self._load(replay)
        while self._node().step > step:
            self.at = self._node().parent
        return self._position(fresh=True)

    def resume(self, message: Message) -> Message:
        """Opens the game of `seed` with all that was tried in it, at the node `at`.

        `nodes` has the parent, the action and who took it of each node after the root, in the order
        in which they were made.
        """
        seed, nodes = message.get("seed"), message.get("nodes")
        if not isinstance(seed, str):
            raise UserError("seed: expected text")
        tree = Tree.of(GameId.read(seed), nodes)
        at = _integer(message, "at", len(tree.nodes))
        self._open(tree.game)
        self.tree, self.at = tree, at
        return self._position(fresh=True)

    # --- the game --------------------------------------------------------------------------------

    def _open(self, game: GameId, start: State | None = None) -> None:
        self.tree = Tree(game, start)
        self.task = None
        self.at = 0
        self.opinions: dict[int, Opinion] = {}
        self.odds: dict[int, Odds] = {}
        self.remembered: dict[tuple[str, int], Opinion] = {}  # of agents with memory, by name

    def _load(self, replay: Replay) -> None:
        self._open(replay.game)
        for action in replay.actions:
            self._play(action, "replay")

    def _after(self, node_index: int) -> int | None:
        """The action at a node with which the way to the position shown goes on, if it does."""
        node = self._node()
        while node.parent > node_index:
            node = self.tree.nodes[node.parent]
        return node.action if node.parent == node_index else None

    def _leave(self) -> None:
        """Nobody is at the controls, and nothing hidden is shown."""
        self.controls, self.reveal = None, False
        self.opinions.clear()

    def _nodes(self, message: Message, most: int) -> list[int]:
        numbers = message.get("nodes")
        if not isinstance(numbers, list) or len(numbers) > most:
            raise UserError(f"nodes: expected a list of at most {most}")
        return [_integer({"nodes": n}, "nodes", len(self.tree.nodes)) for n in numbers]

    def _judge(self) -> Judge:
        if self.judge is None:
            raise UserError("there is nobody here who could judge")
        return self.judge()

    def _node(self) -> GameNode:
        return self.tree.nodes[self.at]

    def _play(self, action: int, by: str) -> GameNode:
        node = self.tree.play(self.at, action, by)
        self.at = node.index
        return node

    def _name_of_agent(self, message: Message) -> str:
        name = message.get("agent")
        if not isinstance(name, str) or name not in self.agents:
            raise UserError(f"no agent {name!r:.60}: there are {', '.join(self.agents) or 'none'}")
        return name

    # --- the agent -------------------------------------------------------------------------------

    def _agent(self) -> Agent:
        if not self.controls:
            raise UserError("there is no agent: `hackmatrix watch` has one")
        return self.agents[self.controls]()

    def _choice(self) -> int:
        view = self._opinion(self.at)
        assert view is not None
        if self.greedy or self._agent().searches:
            return view.best
        return view.sample(self.tree.game, self._node().step)

    def _opinion(self, node_index: int) -> Opinion | None:
        """The opinion of the agent at the controls on a node; None at an end, or without one."""
        if not self.controls or self.tree.nodes[node_index].over:
            return None
        if node_index not in self.opinions:
            self.opinions[node_index] = self._ask(self._agent(), node_index)
        return self.opinions[node_index]

    def _ask(self, agent: Agent, node_index: int) -> Opinion:
        if agent.searches:
            return self._ask_here(agent, node_index, observe_saved(self.tree.state(node_index)))
        if not isinstance(agent.policy, RecurrentPolicy):
            return self._ask_here(agent, node_index, None)
        unknown, node = [], node_index
        while node >= 0 and (agent.name, node) not in self.remembered:
            unknown.append(node)
            node = self.tree.nodes[node].parent
        for node in reversed(unknown):
            parent = self.remembered.get((agent.name, self.tree.nodes[node].parent))
            memory = parent.memory if parent else None
            self.remembered[agent.name, node] = self._ask_here(agent, node, memory)
        return self.remembered[agent.name, node_index]

    def _ask_here(self, agent: Agent, node_index: int, memory: Any) -> Opinion:
        state = self.tree.state(node_index)
        valid = set(valid_actions(state))
        return opinion(agent, observe(state), [a in valid for a in range(NUM_ACTIONS)], memory)

    def _branches(self, name: str, view: Opinion) -> list[list[Any]]:
        """What a search tried here: action, visits, chance of winning if it is known, sequel."""
        fit = None
        if view.branches and self.judge is not None:
            judge = self.judge()
            fit = judge.fit if name.startswith(f"{judge.agent.name}@") else None  # its own values
        stage = self._node().stage
        return [
            [action, visits, None if fit is None else odds_of(value, stage, fit).win, line]
            for action, visits, value, line in view.branches
        ]

    def _brief(self, node_index: int) -> list[Any]:
        """Of an opinion what graphs show: node, value, probability of the best action."""
        view = self._opinion(node_index)
        if view is None:
            return [node_index, None, None]
        return [node_index, view.value, max(view.probabilities)]

    def _briefs(self) -> list[list[Any]]:
        """Opinions of all nodes; only of the one that is shown if that takes too long."""
        if not self.controls:
            return []
        count = len(self.tree.nodes)
        takes_long = count > _BRIEFED or self._agent().searches
        return [self._brief(n) for n in ([self.at] if takes_long else range(count))]

    def _odds_of(self, nodes: Collection[int]) -> list[list[Any]]:
        """The odds of nodes: number, share of wins, stages cleared."""
        if self.judge is None or not self.controls:
            return []
        judge = self.judge()
        for number in nodes:
            if number not in self.odds:
                self.odds[number] = odds_at(judge, self.tree.state(number))
        return [[n, round(self.odds[n].win, 4), round(self.odds[n].stages, 2)] for n in nodes]

    def _all_odds(self) -> list[list[Any]]:
        """The odds of all nodes; only of the one that is shown if that takes too long."""
        count = len(self.tree.nodes)
        return self._odds_of(range(count) if count <= _BRIEFED else [self.at])

    # --- answers ---------------------------------------------------------------------------------

    def _answer_play(self, nodes: list[GameNode]) -> Message:
        answer = self._position() | {"added": [_brief_node(node) for node in nodes]}
        if self.controls:
            before = [node.parent for node in nodes]
            known = [n for n in {*before, self.at} if n >= 0]
            answer["opinions"] = [self._brief(n) for n in known]
            answer["odds"] = self._odds_of(known)
        return answer

    def _position(self, *, fresh: bool = False) -> Message:
        """The position as the page shows it; `fresh` with the whole tree, as of a new game."""
        state = self.tree.state(self.at)
        answer = {"at": self.at, **facts_of(state, reveal=self.reveal), "last": None}
        answer["controls"] = self.controls
        by = self._node().by
        answer["ending"] = ending(state.over, by_you=by == YOU, by_agent=by in self.agents)
        if state.over and self.tree.is_game:
            answer["hits"] = hits_taken(self.tree.game, self.tree.line(self.at))
        answer["odds"] = self._odds_of([self.at])
        if last := self.tree.last(self.at):
            before, outcome = last
            node = self._node()
            taken = {"action": node.action, "by": node.by}
            answer["last"] = taken | facts_of_action(before, state, outcome)
        if self.task is not None:
            answer["task"] = self.task()
        if fresh:
            answer["game"] = str(self.tree.game)
            answer["nodes"] = [_brief_node(node) for node in self.tree.nodes]
            answer["opinions"] = self._briefs()
            answer["odds"] = self._all_odds()
        if (view := self._opinion(self.at)) is not None:
            answer["agent"] = {
                "name": self.controls,
                "probabilities": [round(p, 6) for p in view.probabilities],
                "value": view.value,
                "entropy": view.entropy,
                "suggests": self._choice(),
                "branches": self._branches(self.controls or "", view),
            }
        return answer


@cache
def load_packaged_puzzles() -> list[Puzzle]:
    """The puzzles that come with the package, read once."""
    return load()


def _brief_node(node: GameNode) -> list[Any]:
    """A node as the page keeps it: number, parent, action, by, step, total, stage, over."""
    total = round(node.total, 3)
    return [node.index, node.parent, node.action, node.by, node.step, total, node.stage, node.over]


def _integer(message: Message, name: str, bound: int) -> int:
    value = message.get(name)
    if type(value) is not int or not 0 <= value < bound:
        raise UserError(f"{name}: expected 0..{bound - 1}, got {value!r:.60}")
    return value


def _random_game() -> GameId:
    return GameId(random.SystemRandom().randrange(_SEEDS))
