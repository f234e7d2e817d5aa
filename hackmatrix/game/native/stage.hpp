// Section 9: the start of a stage.
#pragma once
#include <iterator>

#include "movement.hpp"
#include "spawning.hpp"
#include "undo.hpp"

namespace hackmatrix {

// The cells of some blocks in drawing order.
struct Layout {
    int count;
    uint8_t cells[MAX_BLOCKS];
    CellSet blocks;
};

// Puts the exit in a random free corner and data siphons in the others.
inline void place_corners(State& state) {
    CellSet free = 0;
    for (int corner : CORNERS) free |= of(corner);
    free &= ~of(state.player.cell);
    state.exit = nth(free, state.dice.choose(EXIT_CORNER, size(free)));
    state.cells.siphons = free & ~of(state.exit);
}

// The cells of one attempt, which may be invalid; fewer than `count` if fewer are free.
inline Layout draw_layout(const State& state, int count, int attempt) {
    CellSet free = ALL_CELLS & ~state.occupied();
    for (int corner : CORNERS) free &= ~of(corner);
    Layout layout{std::min(count, size(free)), {}, 0};
    for (int nth_block = 0; nth_block < layout.count; nth_block++) {
        CellSet options = free & ~layout.blocks;
        int index = attempt * LAYOUT_STRIDE + nth_block;
        int cell = nth(options, state.dice.choose(BLOCK_CELL, size(options), index));
        layout.cells[nth_block] = cell;
        layout.blocks |= of(cell);
    }
    return layout;
}

// Whether all free cells are connected without passing the exit, and no block is enclosed.
inline bool is_valid_layout(CellSet blocks, int exit) {
    CellSet free = ALL_CELLS & ~blocks, passable = exit == 0 ? free : free & ~of(exit);
    CellSet reached = of(0), before = 0;
    while (reached != before) {
        before = reached;
        reached |= spread(reached & passable) & free;
    }
    return reached == free && !(blocks & ~spread(free));
}

// The first valid layout; no blocks if no attempt gives one.
inline Layout choose_layout(const State& state, int count) {
    for (int attempt = 0; attempt < LAYOUT_TRIES; attempt++) {
        Layout layout = draw_layout(state, count, attempt);
        if (is_valid_layout(layout.blocks, state.exit)) return layout;
    }
    return {};
}

// Places 5 to 11 blocks in a valid layout, and draws what is in each.
inline void place_blocks(State& state) {
    const Dice& dice = state.dice;
    Cells& cells = state.cells;
    int count = MIN_BLOCKS + dice.choose(BLOCK_COUNT, MAX_BLOCKS + 1 - MIN_BLOCKS);
    Layout layout = choose_layout(state, count);
    cells.blocks = layout.blocks;
    uint32_t left = (1u << NUM_PROGRAMS) - 1;  // programs that are not on the board
    for (int index = 0; index < layout.count; index++) {
        int cell = layout.cells[index];
        bool is_data = dice.choose(BLOCK_IS_DATA, 2, index) == 0;
        bool is_question = dice.choose(BLOCK_IS_QUESTION, QUESTION_CHANCES, index) == 0;
        int value = is_data ? 1 + dice.choose(BLOCK_POINTS, MAX_POINTS, index)
                            : nth(left, dice.choose(BLOCK_PROGRAM, size(left), index));
        if (is_data) cells.data |= of(cell);
        if (!is_data) left &= ~(1u << value);
        if (is_question) cells.questions |= of(cell);
        cells.value[cell] = value;
        cells.spawn[cell] = is_data ? value : PROGRAMS[value].spawn;
    }
}

// Puts credits or energy on every cell except blocks and the exit.
inline void place_resources(State& state) {
    Cells& cells = state.cells;
    CellSet bare = cells.blocks | of(state.exit);
    ROLLED for (int cell = 0; cell < CELLS; cell++) {
        bool is_credits = state.dice.choose(RESOURCE_IS_CREDITS, 2, cell) == 0;
        int chance = state.dice.choose(RESOURCE_AMOUNT, std::size(AMOUNT_CHANCES), cell);
        int amount = has(bare, cell) ? 0 : AMOUNT_CHANCES[chance];
        cells.credits[cell] = is_credits ? amount : 0;
        cells.energy[cell] = is_credits ? 0 : amount;
    }
}

// Generates a new board around the pieces, which stay where they are.
SEPARATE void begin_stage(State& state) {
    state.turn = 0;
    state.next_task = state.interval;
    state.show = state.calm = state.step = false;
    state.atk_uses = 0;
    forget(state);
    state.cells = {};
    place_corners(state);
    place_blocks(state);
    place_resources(state);
    for (int i = 0; i < state.stage; i++) spawn(state, FIRST_STAGE_SPAWN + i, false, false);
}

}  // namespace hackmatrix
