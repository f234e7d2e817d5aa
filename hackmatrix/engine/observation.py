"""Section 12: what the player can see, as a compact record and as float features."""

from hackmatrix.engine.movement import exit_distances
from hackmatrix.engine.spawning import line_of_fire
from hackmatrix.engine.state import Enemy, State
from hackmatrix.rules.board import CELLS, MAX_POINTS, MAX_RESOURCE, Content
from hackmatrix.rules.enemies import EnemyType
from hackmatrix.rules.observation import (
    BYTE,
    CELL,
    ENEMY,
    MAX_DISTANCE,
    MAX_SEEN,
    MAX_TURNS,
    OWNED,
    RECORD_SIZE,
    RESOURCE,
    SPAWN,
    TRANSMISSION,
    VALUE,
    WORD,
)
from hackmatrix.rules.programs import MAX_ATK_USES, MAX_SAVED_STATES, PROGRAMS
from hackmatrix.rules.stages import FIRST_INTERVAL, LAST_STAGE, MAX_HP


def observe(state: State) -> bytes:
    """The compact record, `RECORD_SIZE` bytes as `rules.observation` lays them out."""
    record = bytearray(RECORD_SIZE)
    fire, distances = line_of_fire(state), exit_distances(state)
    for cell in range(CELLS):
        record[ENEMY + cell] = enemy_byte(state, cell)
        record[TRANSMISSION + cell] = transmission_byte(state, cell) | (cell in fire) << 7
        record[CELL + cell] = cell_byte(state, cell)
        record[RESOURCE + cell] = resource_byte(state, cell, distances[cell])
        record[VALUE + cell], record[SPAWN + cell] = block_bytes(state, cell)
    player = state.player
    record[BYTE["cell"]] = player.cell
    record[BYTE["hp"]] = player.hp
    record[BYTE["stage"]] = state.stage
    record[BYTE["flags"]] = state.show | state.calm << 1 | state.step << 2
    record[BYTE["atk_uses"]] = state.atk_uses
    record[BYTE["saved"]] = len(state.saved)
    for name, at in WORD.items():
        value = getattr(player, name) if hasattr(player, name) else getattr(state, name)
        record[at : at + 2] = value.to_bytes(2, "little")
    record[OWNED : OWNED + 3] = sum(1 << number for number in state.owned).to_bytes(3, "little")
    return bytes(record)


def enemy_byte(state: State, cell: int) -> int:
    """The first enemy in the list stands for all on its cell; a hidden cryptog hides the others."""
    last_seen = any(
        enemy.last == cell and enemy.type == EnemyType.CRYPTOG and not state.sees(enemy)
        for enemy in state.enemies
    )
    return _enemy_bits(state, next(iter(state.enemies_on(cell)), None)) | last_seen << 7


def _enemy_bits(state: State, enemy: Enemy | None) -> int:
    if enemy is None or not state.sees(enemy):
        return 0
    return (enemy.type + 1) | enemy.hp << 3 | enemy.stunned << 5 | enemy.from_siphon << 6


def transmission_byte(state: State, cell: int) -> int:
    """Whether one comes, when, and after SHOW what."""
    transmission = state.transmission_on(cell)
    if transmission is None:
        return 0
    shown = transmission.type + 1 if state.show else 0
    return 1 | min(transmission.turns, MAX_TURNS) << 1 | shown << 4


def cell_byte(state: State, cell: int) -> int:
    """What the cell holds, its marks, and how many enemies are seen on it."""
    content = state.cells[cell]
    seen = sum(state.sees(enemy) for enemy in state.enemies_on(cell))
    return (
        _seen_block(state, cell)
        | content.siphoned << 2
        | content.center << 3
        | (content.content == Content.SIPHON) << 4
        | (content.content == Content.EXIT) << 5
        | min(seen, MAX_SEEN) << 6
    )


def _seen_block(state: State, cell: int) -> int:
    content = state.cells[cell]
    if not content.is_block:
        return 0
    if content.content == Content.QUESTION and not content.siphoned:
        return int(Content.QUESTION)
    return int(Content.DATA if content.is_data else Content.PROGRAM)


def resource_byte(state: State, cell: int, distance: int | None) -> int:
    """Credits and energy, hidden under an unsiphoned block, and the distance from the exit."""
    content = state.cells[cell]
    far = MAX_DISTANCE if distance is None else min(distance, MAX_DISTANCE)
    if content.is_block and not content.siphoned:
        return far << 4
    return content.credits | content.energy << 2 | far << 4


def block_bytes(state: State, cell: int) -> tuple[int, int]:
    """Points or program, and spawn count; hidden on a question block."""
    content = state.cells[cell]
    if _seen_block(state, cell) in (0, Content.QUESTION):
        return 0, 0
    return content.points if content.is_data else content.program, content.spawn


def features(record: bytes, layout: str) -> list[float]:
    """The float features of a record.

    Args:
        record: a compact record.
        layout: "classic" (1545 numbers) or "full" (1946).
    """
    classic = [
        *player_features(record),
        *(float(owns) for owns in _owned(record)),
        *(x for cell in range(CELLS) for x in cell_features(record, cell)),
    ]
    if layout == "classic":
        return classic
    extra = [x for cell in range(CELLS) for x in extra_cell_features(record, cell)]
    return [*classic, *extra, *extra_features(record)]


def _word(record: bytes, name: str) -> int:
    return record[WORD[name]] | record[WORD[name] + 1] << 8


def _owned(record: bytes) -> list[bool]:
    bits = int.from_bytes(record[OWNED : OWNED + 3], "little")
    return [bool(bits >> number & 1) for number in range(len(PROGRAMS))]


def _one_hot(index: int, size: int) -> list[float]:
    return [float(i == index) for i in range(size)]


def player_features(record: bytes) -> list[float]:
    """The 10 numbers of the player."""
    cell, flags = record[BYTE["cell"]], record[BYTE["flags"]]
    return [
        cell // 6 / 5,
        cell % 6 / 5,
        record[BYTE["hp"]] / MAX_HP,
        min(_word(record, "credits") / 50, 1),
        min(_word(record, "energy") / 50, 1),
        (record[BYTE["stage"]] - 1) / (LAST_STAGE - 1),
        _word(record, "siphons") / 10,
        (_word(record, "attack") - 1) / 2,
        float(flags & 1),
        float(flags >> 1 & 1),
    ]


def cell_features(record: bytes, cell: int) -> list[float]:
    """The 42 channels of a cell in the classic layout."""
    enemy, coming = record[ENEMY + cell], record[TRANSMISSION + cell]
    holds, resource = record[CELL + cell], record[RESOURCE + cell]
    value, spawn = record[VALUE + cell], record[SPAWN + cell]
    block = holds & 3
    return [
        *_one_hot((enemy & 7) - 1, 4),
        (enemy >> 3 & 3) / 3,
        float(enemy >> 5 & 1),
        float(enemy >> 6 & 1),
        *_one_hot(block - 1, 3),
        value / MAX_POINTS if block == Content.DATA else 0.0,
        float(block > 0 and holds >> 2 & 1),
        *_one_hot(value if block == Content.PROGRAM else -1, len(PROGRAMS)),
        min(spawn / 9, 1),
        (coming >> 1 & 7) / MAX_TURNS,
        (resource & 3) / MAX_RESOURCE,
        (resource >> 2 & 3) / MAX_RESOURCE,
        float(holds >> 4 & 1),
        float(holds >> 5 & 1),
        float(holds >> 3 & 1),
    ]


def extra_cell_features(record: bytes, cell: int) -> list[float]:
    """The 10 channels that the full layout adds for a cell."""
    coming, holds = record[TRANSMISSION + cell], record[CELL + cell]
    return [
        *_one_hot((coming >> 4 & 7) - 1, 4),
        float(coming & 1),
        float(holds >> 2 & 1),
        float(record[ENEMY + cell] >> 7),
        (holds >> 6) / MAX_SEEN,
        float(coming >> 7),
        (record[RESOURCE + cell] >> 4) / MAX_DISTANCE,
    ]


def extra_features(record: bytes) -> list[float]:
    """The 41 numbers that the full layout adds."""
    credits, energy = _word(record, "credits"), _word(record, "energy")
    until_task = _word(record, "next_task") - _word(record, "turn")
    return [
        float(record[BYTE["flags"]] >> 2 & 1),
        _word(record, "turn") / 20,
        max(-1.0, min(until_task / 12, 1)),
        _word(record, "interval") / FIRST_INTERVAL,
        min(_word(record, "pending") / 9, 1),
        min(record[BYTE["atk_uses"]] / MAX_ATK_USES, 1),
        min(_word(record, "score") / 50, 1),
        min(record[BYTE["saved"]] / MAX_SAVED_STATES, 1),
        min(credits / 20, 1),
        min(energy / 20, 1),
        *_one_hot(record[BYTE["stage"]] - 1, LAST_STAGE),
        *(
            float(owns and credits >= program.credits and energy >= program.energy)
            for owns, program in zip(_owned(record), PROGRAMS, strict=True)
        ),
    ]
