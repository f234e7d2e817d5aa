// Section 1: the board's geometry, and sets of cells: bit i of 64 stands for cell i.
#pragma once
#include <cstdint>

#include "platform.hpp"
#include "rules.hpp"

namespace hackmatrix {

using CellSet = uint64_t;

constexpr int NOWHERE = -1;  // beyond the edge
constexpr CellSet ALL_CELLS = (CellSet{1} << CELLS) - 1;

constexpr int row(int cell) { return cell / SIZE; }
constexpr int col(int cell) { return cell % SIZE; }
constexpr CellSet of(int cell) { return CellSet{1} << cell; }
constexpr bool has(CellSet cells, int cell) { return cells >> cell & 1; }
constexpr int first(uint64_t bits) { return __builtin_ctzll(bits); }
constexpr int size(uint64_t bits) { return __builtin_popcountll(bits); }

// The n-th member of a set, from 0 on.
constexpr int nth(uint64_t bits, int n) {
    for (; n > 0; n--) bits &= bits - 1;
    return first(bits);
}

// The members of a set, ascending: `for (int cell : members(cells))`.
struct members {
    uint64_t bits;
    constexpr explicit members(uint64_t bits) : bits(bits) {}
    constexpr members begin() const { return *this; }
    constexpr members end() const { return members(0); }
    constexpr int operator*() const { return first(bits); }
    constexpr void operator++() { bits &= bits - 1; }
    constexpr bool operator!=(members other) const { return bits != other.bits; }
};

struct Geometry {
    int8_t neighbour[CELLS][NUM_DIRECTIONS];  // the next cell, `NOWHERE` beyond the edge
    CellSet neighbours[CELLS];                // the 2 to 4 neighbours on the board
    CellSet cross[CELLS];                     // the cell and its neighbours
    CellSet around[CELLS];                    // the up to 8 adjacent cells, diagonals included
    CellSet ray[CELLS][NUM_DIRECTIONS];       // the cells from the next one to the edge
    CellSet row[SIZE], col[SIZE];             // the cells of each row and column
};

constexpr bool on_board(int row, int col) {
    return 0 <= row && row < SIZE && 0 <= col && col < SIZE;
}

constexpr Geometry geometry() {
    Geometry geometry{};
    for (int cell = 0; cell < CELLS; cell++) {
        for (int d = 0; d < NUM_DIRECTIONS; d++) {
            int to_row = row(cell) + ROWS[d], to_col = col(cell) + COLS[d];
            bool inside = on_board(to_row, to_col);
            int to = inside ? to_row * SIZE + to_col : NOWHERE;
            geometry.neighbour[cell][d] = to;
            if (inside) geometry.neighbours[cell] |= of(to);
            for (; on_board(to_row, to_col); to_row += ROWS[d], to_col += COLS[d])
                geometry.ray[cell][d] |= of(to_row * SIZE + to_col);
        }
        geometry.cross[cell] = geometry.neighbours[cell] | of(cell);
        for (int r = row(cell) - 1; r <= row(cell) + 1; r++)
            for (int c = col(cell) - 1; c <= col(cell) + 1; c++)
                if (on_board(r, c)) geometry.around[cell] |= of(r * SIZE + c);
        geometry.around[cell] &= ~of(cell);
        geometry.row[row(cell)] |= of(cell);
        geometry.col[col(cell)] |= of(cell);
    }
    return geometry;
}

inline constexpr Geometry BOARD = geometry();
inline constexpr auto& NEIGHBOUR = BOARD.neighbour;
inline constexpr auto& NEIGHBOURS = BOARD.neighbours;
inline constexpr auto& CROSS = BOARD.cross;
inline constexpr auto& AROUND = BOARD.around;

// The neighbours of all members of a set.
constexpr CellSet spread(CellSet cells) {
    CellSet up_down = cells << SIZE | cells >> SIZE;
    CellSet left = (cells & ~BOARD.col[0]) >> 1, right = (cells & ~BOARD.col[SIZE - 1]) << 1;
    return (up_down | left | right) & ALL_CELLS;
}

// The cells from a cell on in a direction, up to the first of some stops or the edge.
constexpr CellSet up_to_first(CellSet stops, int cell, int direction) {
    CellSet ray = BOARD.ray[cell][direction], hit = ray & stops;
    if (!hit) return ray;
    bool ascending = ROWS[direction] + COLS[direction] > 0;
    return ray & (ascending ? (hit & -hit) * 2 - 1 : ~CellSet{0} << (63 - __builtin_clzll(hit)));
}

}  // namespace hackmatrix
