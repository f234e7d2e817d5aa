// Section 6: spawning of transmissions.
#pragma once
#include "state.hpp"

namespace hackmatrix {

// Cells in the player's row or column with no enemy and no block between.
inline CellSet line_of_fire(const State& state) {
    CellSet stops = state.cells.blocks | state.enemies.cells(), line = 0;
    for (int direction = 0; direction < NUM_DIRECTIONS; direction++)
        line |= up_to_first(stops, state.player.cell, direction);
    return line;
}

// The cells where a transmission may spawn: outside the line of fire if possible.
inline CellSet spawn_cells(const State& state) {
    CellSet occupied = state.cells.blocks | state.occupied() | of(state.player.cell);
    CellSet empty = ALL_CELLS & ~occupied, covered = empty & ~line_of_fire(state);
    return covered ? covered : empty;
}

// Spawns one transmission of a random type, if there is a cell for it.
inline void spawn(State& state, int index, bool from_schedule, bool from_siphon) {
    CellSet cells = spawn_cells(state);
    if (!cells) return;
    int cell = nth(cells, state.dice.choose(SPAWN_CELL, size(cells), index));
    int enemy_type = state.dice.choose(SPAWN_TYPE, ENEMY_TYPES, index);
    state.transmissions.append({1, static_cast<uint8_t>(cell), static_cast<uint8_t>(enemy_type),
                                from_schedule, from_siphon});
}

}  // namespace hackmatrix
