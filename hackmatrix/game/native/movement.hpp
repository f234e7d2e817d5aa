// Section 5: the cell that an enemy moves to.
#pragma once
#include <cstdlib>

#include "state.hpp"

namespace hackmatrix {

// Breadth-first search from some goals: the cells at distance 0, then 1 and so on.
struct Search {
    CellSet free;  // cells not reached yet that may be entered
    CellSet frontier;

    // A goal itself may be a wall; other walls are never entered.
    Search(CellSet goals, CellSet walls) : free(ALL_CELLS & ~walls & ~goals), frontier(goals) {}

    void advance() {
        frontier = spread(frontier) & free;
        free &= ~frontier;
    }
};

// |row distance| + |col distance| of two cells.
inline int manhattan(int a, int b) {
    return std::abs(row(a) - row(b)) + std::abs(col(a) - col(b));
}

// The neighbour of `cell` on a shortest path to `goal`, `NOWHERE` if there is no path.
inline int first_step(int cell, int goal, CellSet blocked) {
    if (cell == goal || has(blocked, goal)) return NOWHERE;
    for (Search search(of(goal), blocked); search.frontier; search.advance())
        if (search.frontier & NEIGHBOURS[cell])
            for (int to : NEIGHBOUR[cell])
                if (to != NOWHERE && has(search.frontier, to)) return to;
    return NOWHERE;
}

// The cell that an enemy that does not hit moves to; its own if it has to stay.
//
// `occupied` are the cells of all pieces. The enemy's own is among them: a search from the player
// ends next to it.
SEPARATE int next_cell(const State& state, const Enemy& enemy, CellSet occupied) {
    int here = state.player.cell;
    CellSet walls = enemy.type == GLITCH ? 0 : state.cells.blocks;

    int step = first_step(enemy.cell, here, walls | (occupied & ~of(here)));
    if (step != NOWHERE) return step;
    step = first_step(enemy.cell, here, walls);
    if (step != NOWHERE && !has(occupied, step)) return step;
    int nearest = enemy.cell, least = CELLS;
    for (int to : NEIGHBOUR[enemy.cell])
        if (to != NOWHERE && !has(walls | occupied, to) && manhattan(to, here) < least) {
            nearest = to;
            least = manhattan(to, here);
        }
    return nearest;
}

// The search from the exit, for which the player's cell counts as free even if it is a block.
inline Search from_exit(const State& state) {
    return Search(of(state.exit), state.cells.blocks & ~of(state.player.cell));
}

// Walking distance of the player to the exit, 0 without a path.
inline int exit_distance(const State& state) {
    int distance = 0;
    for (Search search = from_exit(state); search.frontier; search.advance(), distance++)
        if (has(search.frontier, state.player.cell)) return distance;
    return 0;
}

}  // namespace hackmatrix
