// Section 3: valid actions, movement and attacks by direction.
#pragma once
#include "combat.hpp"
#include "programs.hpp"

namespace hackmatrix {

// What an action did.
struct Effect {
    int kills;       // pieces destroyed, without those from the schedule
    bool picked_up;  // a data siphon by walking
    bool completed;  // the stage
};

// The neighbours of the player that are free or hold an enemy to attack.
inline CellSet ways(const State& state) {
    CellSet closed = state.cells.blocks & ~state.enemies.cells();
    return NEIGHBOURS[state.player.cell] & ~closed;
}

// Whether the next cell in a direction is free or holds an enemy to attack.
inline bool can_go(const State& state, int direction) {
    int cell = NEIGHBOUR[state.player.cell][direction];
    return cell != NOWHERE && has(ways(state), cell);
}

// Whether an action 0..27 is among `valid_actions`.
inline bool is_valid(const State& state, int action) {
    if (action < SIPHON) return can_go(state, action);
    if (action == SIPHON) return state.player.siphons >= 1;
    return can_run(state, action - FIRST_PROGRAM);
}

// The valid actions as bits; none after the end of the game.
SEPARATE uint32_t valid_actions(const State& state) {
    if (state.over != RUNNING) return 0;
    uint32_t valid = uint32_t{state.player.siphons >= 1} << SIPHON;
    CellSet open = ways(state);
    for (int direction = 0; direction < NUM_DIRECTIONS; direction++) {
        int cell = NEIGHBOUR[state.player.cell][direction];
        valid |= uint32_t{cell != NOWHERE && has(open, cell)} << direction;
    }
    for (int program : members(state.owned))
        valid |= uint32_t{can_run(state, program)} << (FIRST_PROGRAM + program);
    return valid;
}

// The cell that an attack in a direction hits, at any distance; `NOWHERE` if there is no target.
inline int target(const State& state, int direction) {
    CellSet pieces = state.occupied();
    CellSet ahead = up_to_first(pieces | state.cells.blocks, state.player.cell, direction);
    return ahead & pieces ? first(ahead & pieces) : NOWHERE;
}

// Walks to the neighbour; returns whether a data siphon was picked up there.
inline bool walk(State& state, int direction) {
    int to = NEIGHBOUR[state.player.cell][direction];
    state.player.cell = to;
    if (!has(state.cells.siphons, to)) return false;
    state.player.siphons = saturate(state.player.siphons + 1);
    state.cells.siphons &= ~of(to);
    return true;
}

// Attacks in a direction if there is a target, else walks one cell.
inline Effect go(State& state, int direction) {
    int struck = target(state, direction);
    if (struck != NOWHERE) return {attack(state, struck), false, false};
    bool picked_up = walk(state, direction);
    return {0, picked_up, state.player.cell == state.exit};
}

}  // namespace hackmatrix
