"""The session of an exported page: what its Web Worker runs, on Pyodide."""

import json
import math
from array import array
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from hackmatrix.agents.roster.built_in import built_in_agents
from hackmatrix.agents.roster.judge import Judge
from hackmatrix.agents.roster.opinion import Agent, PolicyFunction
from hackmatrix.game.engine.replay import GameId
from hackmatrix.game.foresight.features import features
from hackmatrix.game.rules.chance import EVALUATION_STREAM
from hackmatrix.ui.session.session import Session

# The pages, and the game that each opens: what `hackmatrix watch` opens; to play, an example, which
# is shown while Python loads: then everybody is given another game.
PAGES = {"watch": GameId(EVALUATION_STREAM), "play": GameId(7)}
_REMEMBERED = 256  # positions of which the agent and the judge ask the same network
SETTINGS, WEIGHTS = "agent.json", "agent.bin"  # the agent's files


def begin(page: str) -> Callable[[str], str]:
    """A new session of a page, with the agent's files in the current folder."""
    return open_session(page, json.loads(Path(SETTINGS).read_text()), Path(WEIGHTS).read_bytes())


def open_session(page: str, settings: dict[str, Any], weights: bytes) -> Callable[[str], str]:
    """A function that answers messages in JSON: a new session.

    Args:
        page: one of `PAGES`.
        settings: the agent's `name`, those that `plain_mlp.make_policy` takes if it is an MLP, and
            `odds`, the fit of the judge, if it is the packaged agent.
        weights: of its network, if it has one.
    """

    @cache
    def agent() -> Agent:
        policy = make_policy(settings, weights)
        asked = lru_cache(_REMEMBERED)(lambda record: policy(record, ()))
        return Agent(settings["name"], lambda record, _: asked(record))

    agents, name = built_in_agents(), settings["name"]
    if "layout" in settings:
        agents[name] = agent
    agents = {name: agents.pop(name), **agents}

    def judge() -> Judge:
        return Judge(agent(), settings["odds"])

    judged = judge if "odds" in settings else None
    session = Session(PAGES[page], agents, judge=judged, playing=page == "play")
    session.is_given = page == "watch"
    return partial(_answer, session)


def _answer(session: Session, text: str) -> str:
    answer = session.handle(json.loads(text))
    return json.dumps(answer, separators=(",", ":"), allow_nan=False)


# --- The forward pass of an MLP in plain Python, for where there is no NumPy ----------------------


Layer = list[tuple[list[float], float]]  # for each output the weights of all inputs, and a bias


def make_policy(settings: dict[str, Any], weights: bytes) -> PolicyFunction:
    """The policy of an MLP.

    Args:
        settings: `layout` of the features, `activation`, and `sizes`, inputs and outputs of each
            layer: the trunk's, logits, value.
        weights: float32, little-endian: for each layer those of its outputs one after another, then
            its biases.
    """
    numbers = array("f", weights)
    layers, start = list[Layer](), 0
    for inputs, outputs in settings["sizes"]:
        bias = numbers[start + inputs * outputs :][:outputs]
        rows = [numbers[start + inputs * i :][:inputs].tolist() for i in range(outputs)]
        layers.append(list(zip(rows, bias, strict=True)))
        start += (inputs + 1) * outputs
    squash = math.tanh if settings["activation"] == "tanh" else _relu
    return partial(_forward, layers, settings["layout"], squash)


def _relu(x: float) -> float:
    return max(x, 0.0)


def _forward(
    layers: list[Layer],
    layout: str,
    squash: Callable[[float], float],
    record: bytes,
    mask: Sequence[bool],
) -> tuple[list[float], float]:
    """The forward pass of `agents/networks/numpy_forward.py`, without NumPy."""
    del mask
    *trunk, logits, value = layers
    hidden: Sequence[float] = features(record, layout)
    for layer in trunk:
        hidden = [squash(x) for x in _outputs(layer, hidden)]
    return _outputs(logits, hidden), _outputs(value, hidden)[0]


def _outputs(layer: Layer, inputs: Sequence[float]) -> list[float]:
    """A product that skips inputs of 0, which most features and half of the units are."""
    used = [(i, x) for i, x in enumerate(inputs) if x]
    return [sum([weights[i] * x for i, x in used], bias) for weights, bias in layer]
