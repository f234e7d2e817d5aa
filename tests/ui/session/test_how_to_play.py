"""The rules in pictures: each picture shows what the engine does."""

from itertools import chain

import pytest

from hackmatrix.game.engine.actions import valid_actions
from hackmatrix.game.rules.board import SIZE
from hackmatrix.ui.session.how_to_play import RULES, RuleText

PICTURES = {rule.title: rule.as_json() for rule in RULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.title)
def test_a_picture_has_its_cells_and_all_that_is_marked_is_in_it(rule: RuleText) -> None:
    assert rule.action is None or rule.action in valid_actions(rule.position)
    picture = rule.as_json()
    assert len(picture["cells"]) == rule.columns * rule.rows
    marked = [*picture["struck"], *picture["cross"], *chain(*picture["moves"])]
    marked += [cell for cell, hits in enumerate(picture["threat"]) if hits]
    for cell in marked:
        assert cell // SIZE < rule.rows
        assert cell % SIZE < rule.columns


def test_pictures_show_what_their_words_say() -> None:
    assert PICTURES["Reach the exit."]["moves"] == [[1, 2]]
    shot = PICTURES["One thing a turn."]
    assert (shot["struck"], shot["moves"]) == ([3], [])  # at a distance, from where one stands
    virus, daemon = PICTURES["Virus: 2 hp, two steps a turn."], PICTURES["Daemon: 3 hp."]
    assert (virus["moves"], virus["struck"]) == ([[2, 1]], [0])  # a step, and a hit
    assert (daemon["moves"], daemon["struck"]) == ([[2, 1]], [])
    assert PICTURES["Glitch: 2 hp, walks over blocks."]["moves"] == [[2, 1]]
    assert sorted(PICTURES["Data siphons."]["cross"]) == [1, 6, 7, 8, 13]
    assert PICTURES["Credits and energy pay for programs."]["struck"] == [0, 3]
    assert any(PICTURES["Threats."]["threat"])
