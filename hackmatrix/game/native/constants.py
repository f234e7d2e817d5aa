"""The names, numbers and tables of `hackmatrix/game/rules` as `rules.hpp`, for the C++ engine.

The build writes that header (`hatch_build.py`), so that each number of the game stands in one file.
Names are those of Python, except where two files of `rules` share one.
"""

import hashlib
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path

from hackmatrix.game.rules import (
    actions,
    board,
    chance,
    enemies,
    observation,
    programs,
    rewards,
    stages,
    tactical,
    training_reward,
)

_SECTIONS: dict[str, list[type[IntEnum] | tuple[object, str]]] = {
    "Section 1: the board. A cell is its flat index `row * 6 + col`.": [
        (board, "SIZE CELLS CORNERS LIMIT MAX_RESOURCE MAX_SPAWN"),
        board.Content,
    ],
    "Section 2: enemies.": [
        enemies.EnemyType,
        (enemies, "ENEMY_HP=MAX_HP STEPS_PER_TURN MAX_ENEMIES MAX_DISABLED"),
    ],
    "Section 3: actions.": [(actions, "NUM_DIRECTIONS SIPHON FIRST_PROGRAM NUM_ACTIONS")],
    "Section 8: programs.": [
        programs.ProgramId,
        (programs, "MAX_SAVED_STATES EXCH_ENERGY DELAY_TURNS MAX_ATK_USES"),
    ],
    "Sections 6, 7, 9 and 10: stages.": [
        (stages, "LAST_STAGE PLAYER_HP=MAX_HP FIRST_INTERVAL STAGE_INTERVAL MIN_INTERVAL"),
        (stages, "SIPHON_DELAY MIN_BLOCKS MAX_BLOCKS LAYOUT_TRIES AMOUNT_CHANCES START_BONUSES"),
        (board, "MAX_POINTS"),
    ],
    "Every random draw.": [
        chance.Site,
        (chance, "SCHEDULED_SPAWN FIRST_PENDING_SPAWN FIRST_STAGE_SPAWN LAYOUT_STRIDE"),
    ],
    "Section 11: rewards, in units of 0.005.": [
        (rewards, "UNIT STAGE_COMPLETION DEATH STEP_PENALTY=STEP SCORE_GAIN KILL DISTANCE"),
        (rewards, "DATA_SIPHON_GAIN=DATA_SIPHON VICTORY VICTORY_SCORE RESOURCE_GAIN DAMAGE"),
        (rewards, "RESOURCE_HOLDING HP_RECOVERY SIPHON_QUALITY PROGRAM_WASTE SIPHON_DEATH"),
    ],
    "The reward `progress`.": [
        (training_reward, "STAGE_PAID=STAGE WIN_PAID=WIN DEATH_COST=DEATH HP_WORTH=HP"),
        (training_reward, "SIPHON_WORTH=SIPHON RESOURCE_WORTH=RESOURCE MAX_SIPHONS HOARD"),
    ],
    "Section 12: observations.": [
        (observation, "MAX_TURNS MAX_SEEN MAX_DISTANCE RECORD_SIZE"),
        (observation, "ENEMY_PLANE=ENEMY TRANSMISSION_PLANE=TRANSMISSION CELL_PLANE=CELL"),
        (observation, "RESOURCE_PLANE=RESOURCE VALUE_PLANE=VALUE SPAWN_PLANE=SPAWN"),
    ],
    "Section 12, continued: the layout `tactical`.": [
        (tactical, "FAR MAX_HITS MAX_COUNT MAX_SPAWNS RINGS LARGEST_WORTH NO_WORTH HOARDS"),
        (tactical, "WINDOW STRIKES CREDIT_WORTH ENERGY_WORTH SPAWN_WORTH STEP_WORTH"),
        (tactical, "QUESTION_WORTH PROGRAM_WORTH TACTICAL_SIZE"),
    ],
}
_FIRST_SCALAR = min(observation.BYTE.values())  # the first byte of a record after its planes
_COMPUTED: dict[str, object] = {
    "ROWS": [rows for rows, _ in board.DIRECTIONS],  # up, down, left, right: tried in this order
    "COLS": [cols for _, cols in board.DIRECTIONS],
    "ENEMY_TYPES": len(enemies.EnemyType),
    "MOST_STEPS": max(enemies.STEPS_PER_TURN),
    "MAX_TRANSMISSIONS": board.CELLS,
    "NUM_PROGRAMS": len(programs.PROGRAMS),
    "QUESTION_CHANCES": len(stages.QUESTION_CHANCES),  # of which the first is a question block
    "NUM_PARTS": len(rewards.REWARD_PARTS),
    "SCALARS": _FIRST_SCALAR,
}


def header() -> str:
    """The text of `rules.hpp`."""
    parts = [
        "// Written by the build from hackmatrix/game/rules: change the rules there, not here.",
        "#pragma once\n#include <cstdint>\n\nnamespace hackmatrix {",
    ]
    for title, entries in _SECTIONS.items():
        parts.append(f"\n// {title}")
        for entry in entries:
            if isinstance(entry, tuple):
                parts += [_constant(name, value) for name, value in _named(*entry).items()]
            else:
                parts.append(_enum(entry.__name__, {_name(member): member for member in entry}))
    parts.append("")
    parts += [_constant(name, value) for name, value in _COMPUTED.items()]
    costs = [(program.credits, program.energy, program.spawn) for program in programs.PROGRAMS]
    parts.append("struct Program { int credits, energy, spawn; };")
    parts.append(f"constexpr Program PROGRAMS[] = {_value(costs)};")
    offsets = {name: byte - _FIRST_SCALAR for name, byte in observation.BYTE.items()}
    parts.append(f"struct ScalarAt {{ {_enum('', offsets)} }};  // bytes after the planes")
    sizes = {group.name: group.size for group in tactical.GROUPS}
    fields = "".join(
        f"    int8_t {name}{f'[{size}]' if size > 1 else ''};\n" for name, size in sizes.items()
    )
    parts.append(f"struct Tactical {{\n{fields}}};\n\n}}  // namespace hackmatrix\n")
    return "\n".join(parts)


def write(folder: Path) -> None:
    """Writes `rules.hpp` into a folder, and leaves it alone if it is there with the same text."""
    path, text = folder / "rules.hpp", header()
    if not path.exists() or path.read_text() != text:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def source_digest() -> str:
    """A digest of all that the module is built from: the sources in C++ and the header."""
    digest = hashlib.sha256(header().encode())
    for path in sorted(Path(__file__).parent.glob("*.?pp")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _named(module: object, names: str) -> dict[str, object]:
    """Values of a module by their names in C++, of which each may be `NAME=NAME_IN_PYTHON`."""
    pairs = [name.partition("=") for name in names.split()]
    return {name: getattr(module, python or name) for name, _, python in pairs}


def _name(member: IntEnum) -> str:
    return "DATA_SIPHON" if member is board.Content.SIPHON else member.name  # SIPHON: the action


def _enum(name: str, members: Mapping[str, int]) -> str:
    return f"enum {name} {{ {', '.join(f'{key} = {int(n)}' for key, n in members.items())} }};"


def _constant(name: str, value: object) -> str:
    first, dimensions = value, ""
    while isinstance(first, tuple | list):
        dimensions += f"[{len(first)}]"
        first = first[0]
    kind = "float" if isinstance(first, float) else "int"
    return f"constexpr {kind} {name}{dimensions} = {_value(value)};"


def _value(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"{{{', '.join(map(_value, value))}}}"
    return f"{value}f" if isinstance(value, float) else str(int(value))  # type: ignore[call-overload]
