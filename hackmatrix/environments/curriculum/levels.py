"""The levels of a curriculum, as a YAML file gives them. Imports no JAX."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Self

from hackmatrix.core.errors import UserError
from hackmatrix.core.options import OptionRange, convert
from hackmatrix.core.yaml_file import CURRICULA, config_file, read_yaml
from hackmatrix.environments.interface.metric import Metric, Over, Shown
from hackmatrix.game.rules.board import LIMIT
from hackmatrix.game.rules.programs import PROGRAMS
from hackmatrix.game.rules.stages import LAST_STAGE

RESULTS = ("stages_cleared", "win_rate")  # what a level may have to reach
_MAX_LEVELS = 100


class Span(NamedTuple):
    """The whole numbers from `low` to `high`, both included; each is drawn as often."""

    low: int
    high: int


_FIRST, _NONE = Span(1, 1), Span(0, 0)


@dataclass(frozen=True)
class Advance:
    """The results that the games of a level have to reach before the next level comes."""

    result: str  # one of `RESULTS`
    at_least: float  # their mean
    games: int = 1000  # finished games, of which the mean is taken


@dataclass(frozen=True)
class Level:
    """From where games begin at a level. The defaults are the real game.

    Only starts differ: the rules are those of the game at every level.
    """

    stages: Span = _FIRST  # the first stage
    credits: Span = _NONE  # besides the start bonus
    energy: Span = _NONE  # likewise
    siphons: Span = _NONE  # likewise
    programs: Span = _NONE  # owned, any of them
    transmissions: int | None = None  # most on the first board; None: as many as the stage has
    quiet_turns: int | None = None  # before the first scheduled spawn; None: as the stage has
    share: float = 1.0  # of new games that begin so; the others are real ones
    retry: float = 0.0  # of lost games, share after which their last stage begins again
    advance: Advance | None = None  # None in the last level alone


_GIFT, _SHARE = OptionRange(at_least=0, at_most=99), OptionRange(at_least=0, at_most=1)
_GAMES = OptionRange(at_least=1, at_most=2**20)  # a sum of float32 counts so far
_LIMITS = {
    "stages": OptionRange(at_least=1, at_most=LAST_STAGE),
    "credits": _GIFT,
    "energy": _GIFT,
    "siphons": _GIFT,
    "programs": OptionRange(at_least=0, at_most=len(PROGRAMS)),
    "transmissions": OptionRange(at_least=0, at_most=LAST_STAGE),
    "quiet_turns": OptionRange(at_least=0, at_most=LIMIT),
    "share": _SHARE,
    "retry": _SHARE,
}


@dataclass(frozen=True)
class Curriculum:
    """The levels, the first one first."""

    levels: tuple[Level, ...]

    @classmethod
    def of(cls, setting: Any) -> Self:
        """A curriculum from the name or the path of its file, the list of its levels, or itself.

        Raises:
            UserError: the file can't be read; a name is unknown or a value not valid: the message
                names the level.
        """
        if isinstance(setting, cls):
            return setting
        if isinstance(setting, str | Path):
            return cls._of_file(config_file(Path(setting), CURRICULA))
        return cls._of(setting)

    @classmethod
    def _of(cls, setting: Any) -> Self:
        if not isinstance(setting, list) or not 1 <= len(setting) <= _MAX_LEVELS:
            raise UserError(f"must be a list of 1 to {_MAX_LEVELS} levels, got {setting!r:.60}")
        levels = []
        for number, content in enumerate(setting, start=1):
            try:
                levels.append(_level(content, is_last=number == len(setting)))
            except ValueError as error:
                raise UserError(f"level {number}: {error}") from None
        return cls(tuple(levels))

    @classmethod
    def _of_file(cls, path: Path) -> Self:
        content = read_yaml(path)
        section = content.get("curriculum") if isinstance(content, dict) else None
        if not isinstance(section, dict) or (*content, *section) != ("curriculum", "levels"):
            raise UserError(f"{path}: must hold one section, curriculum, with the list levels")
        try:
            return cls._of(section["levels"])
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    def plain(self) -> list[dict[str, Any]]:
        """The levels as values that JSON and YAML can represent; `of` reads them."""
        return [_plain(level) for level in self.levels]


def _plain(level: Level) -> dict[str, Any]:
    settings: dict[str, Any] = {each.name: getattr(level, each.name) for each in fields(level)}
    if (advance := level.advance) is not None:
        settings["advance"] = {advance.result: advance.at_least, "games": advance.games}
    return {name: list(x) if isinstance(x, Span) else x for name, x in settings.items()}


def _level(content: Any, *, is_last: bool) -> Level:
    settings = _check_names(content, [each.name for each in fields(Level)])
    level = Level(**{each.name: _read(each.name, each.default, settings) for each in fields(Level)})
    if is_last and level.advance is not None:
        raise ValueError("is the last one, so there is nothing to advance to; leave advance out")
    if not is_last and level.advance is None:
        raise ValueError("needs advance, such as {stages_cleared: 2}, to go on to the next level")
    if not is_last and level.share == 0:
        raise ValueError("has share 0, so that no game could show when to advance")
    return level


def _read(name: str, default: Any, settings: Mapping[str, Any]) -> Any:
    """The value of a field of `Level`; its default if it is not given."""
    value = settings.get(name)
    if value is None:
        return default
    if name == "advance":
        return _advance(value)
    limits = _LIMITS[name]
    if not isinstance(default, Span):
        return _parse_number(float if name in ("share", "retry") else int, name, value, limits)
    ends = value if isinstance(value, list) else [value, value]
    if len(ends) != 2:
        raise ValueError(f"{name} must be a number or a range [low, high], got {value!r:.60}")
    low, high = (_parse_number(int, name, end, limits) for end in ends)
    if low > high:
        raise ValueError(f"{name} must go from low to high, got {value!r:.60}")
    return Span(low, high)


def _advance(content: Any) -> Advance:
    settings = _check_names(content, [*RESULTS, "games"], "advance")
    results = [name for name in RESULTS if name in settings]
    if len(results) != 1:
        raise ValueError(f"advance must name one of {' and '.join(RESULTS)}, got {content!r:.60}")
    most = {"stages_cleared": LAST_STAGE, "win_rate": 1}[results[0]]
    at_least = _parse_number(
        float, f"advance.{results[0]}", settings[results[0]], OptionRange(at_least=0, at_most=most)
    )
    games = settings.get("games", Advance.games)
    return Advance(results[0], at_least, _parse_number(int, "advance.games", games, _GAMES))


def _check_names(content: Any, names: Iterable[str], what: str = "it") -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{what} must hold names with values, got {content!r:.60}")
    names = list(names)
    for name in content:
        if name not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise ValueError(f"unknown setting {str(name)[:60]!r}, {hint}")
    return content


def _parse_number(value_type: type, name: str, value: Any, limits: OptionRange) -> Any:
    try:
        result = convert(value_type, value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    if result not in limits:
        raise ValueError(f"{name} must be {limits}, got {value!s:.60}")
    return result


# --- The metrics of a curriculum, in addition to the game's ---------------------------------------


METRICS = (
    Metric(
        "curriculum/level",
        Over.STEPS,
        "level at which new games begin, from 1",
        shown=Shown("GAME", "level", ".2f", in_summary=True),
    ),
    Metric(
        "curriculum/result",
        Over.CHANCES,
        "of the games that began at the level, the mean of what its `advance` names",
        shown=Shown("GAME", "level result", ".3f"),
    ),
)
