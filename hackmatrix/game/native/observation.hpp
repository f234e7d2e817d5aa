// Section 12: the observation as a compact record (`rules/observation.py` has its table).
#pragma once
#include <cstring>

#include "movement.hpp"
#include "spawning.hpp"

namespace hackmatrix {

// A byte for each cell, 1 for the members of a set (and for four places beyond the board).
struct Flags {
    uint8_t at[CELLS + 4];

    explicit Flags(CellSet cells) {
        for (int c = 0; c < CELLS; c += 8) {
            // Eight bits, each kept in its own byte; adding 127 carries what is left to bit 7.
            uint64_t eight = (cells >> c & 255) * 0x0101010101010101 & 0x8040201008040201;
            eight = (eight + 0x7F7F7F7F7F7F7F7F) >> 7 & 0x0101010101010101;
            std::memcpy(at + c, &eight, 8);
        }
    }
};

// The six planes of cells.
inline void observe_cells(const State& state, uint8_t* record) {
    const Cells& cells = state.cells;
    CellSet question = cells.questions & ~cells.siphoned, program = cells.blocks & ~cells.data;
    Flags low((cells.data & ~question) | question), high((program & ~question) | question);
    Flags siphoned(cells.siphoned), center(cells.center), siphons(cells.siphons);
    Flags exit(of(state.exit)), shown(~cells.blocks | cells.siphoned), fire(line_of_fire(state));
    CellSet distance[4] = {}, far = ALL_CELLS;  // the cells whose distance has this bit
    Search search = from_exit(state);
    for (int steps = 0; steps <= MAX_DISTANCE; steps++, search.advance()) {
        CellSet reached = steps < MAX_DISTANCE ? search.frontier : far;
        far &= ~reached;
        for (int bit = 0; bit < 4; bit++)
            if (steps >> bit & 1) distance[bit] |= reached;
    }
    Flags ones(distance[0]), twos(distance[1]), fours(distance[2]), eights(distance[3]);
    for (int c = 0; c < CELLS; c++) {
        int resources = cells.credits[c] | cells.energy[c] << 2;
        record[ENEMY_PLANE + c] = 0;
        record[TRANSMISSION_PLANE + c] = fire.at[c] << 7;
        record[CELL_PLANE + c] = low.at[c] | high.at[c] << 1 | siphoned.at[c] << 2 |
                                 center.at[c] << 3 | siphons.at[c] << 4 | exit.at[c] << 5;
        record[RESOURCE_PLANE + c] = shown.at[c] * resources | ones.at[c] << 4 | twos.at[c] << 5 |
                                     fours.at[c] << 6 | eights.at[c] << 7;
    }
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
