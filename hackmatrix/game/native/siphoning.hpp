// Section 7: siphoning, and the quality of a cell for it.
#pragma once
#include "state.hpp"

namespace hackmatrix {

inline void take(State& state, int cell) {
    Cells& cells = state.cells;
    cells.siphoned |= of(cell);
    Player& player = state.player;
    if (!has(cells.blocks, cell)) {
        player.credits = saturate(player.credits + cells.credits[cell]);
        player.energy = saturate(player.energy + cells.energy[cell]);
        cells.credits[cell] = cells.energy[cell] = 0;
        return;
    }
    cells.questions &= ~of(cell);
    if (has(cells.data, cell)) {
        player.score = saturate(player.score + cells.value[cell]);
    } else if (int program = cells.value[cell]; !(state.owned >> program & 1)) {
        state.acquired[size(state.owned)] = program;
        state.owned |= 1u << program;
    }
    state.pending = saturate(state.pending + cells.spawn[cell]);
    cells.spawn[cell] = 0;
}

// Siphons the player's cell and its neighbours; the spawns of siphoned blocks become pending.
inline void siphon(State& state) {
    int here = state.player.cell;
    if (!has(state.cells.siphoned, here)) take(state, here);
    for (int cell : NEIGHBOUR[here])
        if (cell != NOWHERE && !has(state.cells.siphoned, cell)) take(state, cell);
    state.cells.center |= of(here);
    state.player.siphons--;
    state.interval = std::max(MIN_INTERVAL, state.interval - 1);
    state.next_task = saturate(state.next_task + SIPHON_DELAY);
}

// The gain of siphoning at a cell.
struct Yield {
    uint64_t points;    // how many data blocks of 0, 1, ... points, four bits each
    uint32_t programs;  // not owned yet
    int credits, energy;
};

inline Yield yield_at(const State& state, int cell) {
    const Cells& cells = state.cells;
    Yield gain{};
    for (int c : members(CROSS[cell] & ~cells.siphoned)) {
        if (has(cells.data, c)) {
            gain.points += uint64_t{1} << 4 * cells.value[c];
        } else if (has(cells.blocks, c)) {
            gain.programs |= 1u << cells.value[c];
        } else {
            gain.credits += cells.credits[c];
            gain.energy += cells.energy[c];
        }
    }
    gain.programs &= ~state.owned;
    return gain;
}

// Further credits plus energy that better cells would have given (siphon quality).
inline int missed_resources(const State& state) {
    int here = state.player.cell;
    CellSet blocks = state.cells.blocks, candidates = ALL_CELLS & ~blocks;
    Yield own = has(blocks, here) ? Yield{} : yield_at(state, here);
    if (own.points || own.programs)
        for (int block : members(CROSS[here] & state.unsiphoned_blocks())) candidates &= CROSS[block];
    int credits = 0, energy = 0;
    for (int cell : members(candidates)) {
        Yield other = yield_at(state, cell);
        if (other.points != own.points || other.programs != own.programs) continue;
        if (other.credits < own.credits || other.energy < own.energy) continue;
        credits = std::max(credits, other.credits - own.credits);
        energy = std::max(energy, other.energy - own.energy);
    }
    return credits + energy;
}

}  // namespace hackmatrix
