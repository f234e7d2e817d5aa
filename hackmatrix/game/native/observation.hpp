// Section 12: the observation as a compact record (`rules/observation.py` has its table).
#pragma once
#include <cstring>

#include "movement.hpp"
#include "spawning.hpp"

namespace hackmatrix {

// The six planes of cells.
inline void observe_cells(const State& state, uint8_t* record) {
    const Cells& cells = state.cells;
    CellSet question = cells.questions & ~cells.siphoned, program = cells.blocks & ~cells.data;
    CellSet low = (cells.data & ~question) | question, high = (program & ~question) | question;
    CellSet shown = ~cells.blocks | cells.siphoned, exit = of(state.exit);
    CellSet fire = line_of_fire(state);
    for (int c = 0; c < CELLS; c++) {
        auto bit = [c](CellSet set, int place) { return (set >> c & 1) << place; };
        record[TRANSMISSION_PLANE + c] = bit(fire, 7);
        record[CELL_PLANE + c] = 
            bit(low, 0) | bit(high, 1) | bit(cells.siphoned, 2) | bit(cells.center, 3) |
            bit(cells.siphons, 4) | bit(exit, 5);
        int resources = cells.credits[c] | cells.energy[c] << 2;
        record[RESOURCE_PLANE + c] =
            static_cast<uint8_t>((has(shown, c) ? resources : 0) | MAX_DISTANCE << 4);
    }
    Search search = from_exit(state);
    for (int distance = 0; distance < MAX_DISTANCE; distance++, search.advance())
        for (int cell : each(search.frontier))
            record[RESOURCE_PLANE + cell] =
                static_cast<uint8_t>((record[RESOURCE_PLANE + cell] & 15) | distance << 4);
    std::memcpy(record + VALUE_PLANE, cells.value, CELLS);
    std::memcpy(record + SPAWN_PLANE, cells.spawn, CELLS);
    for (int cell : each(question)) record[VALUE_PLANE + cell] = record[SPAWN_PLANE + cell] = 0;
}

// Enemies and transmissions, on planes that hold the cells already.
inline void observe_pieces(const State& state, uint8_t* record) {
    CellSet taken = 0;  // cells of the enemies so far: the first represents all, even if hidden
    for (const Enemy& enemy : state.enemies) {
        bool is_first = !has(taken, enemy.cell);
        taken |= of(enemy.cell);
        if (!state.sees(enemy)) {
            record[ENEMY_PLANE + enemy.last] |= 1 << 7;
            continue;
        }
        uint8_t& seen = record[CELL_PLANE + enemy.cell];
        if (seen >> 6 < MAX_SEEN) seen = seen + (1 << 6);
        if (is_first)
            record[ENEMY_PLANE + enemy.cell] |= 
                (enemy.type + 1) | enemy.hp << 3 | enemy.stunned << 5 | enemy.from_siphon << 6;
    }
    for (const Transmission& coming : state.transmissions)
        record[TRANSMISSION_PLANE + coming.cell] |= 
            1 | std::min<int>(coming.turns, MAX_TURNS) << 1 |
            (state.show ? coming.type + 1 : 0) << 4;
}

// The compact record, `RECORD_SIZE` bytes.
inline void observe(const State& state, uint8_t* record) {
    const Player& player = state.player;
    std::memset(record + ENEMY_PLANE, 0, CELLS);
    observe_cells(state, record);
    observe_pieces(state, record);
    uint8_t* to = record + NUMBERS;
    *to++ = player.cell;
    *to++ = player.hp;
    *to++ = state.stage;
    *to++ = state.show | state.calm << 1 | state.step << 2;
    *to++ = state.atk_uses;
    *to++ = state.saved;
    for (int number : {player.credits, player.energy, player.siphons, player.attack, player.score,
                       state.turn, state.next_task, state.interval, state.pending}) {
        *to++ = number;
        *to++ = number >> 8;
    }
    for (int shift = 0; shift < 32; shift += 8) *to++ = state.owned >> shift;
}

}  // namespace hackmatrix
