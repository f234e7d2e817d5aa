// The rows that the network `player_centred` sums of a record: those of `rows_of` in
// `agents/networks/rows.py`, by the tables that it hands over, and the sums of their weights.
#pragma once
#include <vector>

#include "record.hpp"

namespace hackmatrix::rows {

constexpr int VIEWS = 1 + NUM_DIRECTIONS;  // the player's, then one of each direction
constexpr int REACH = 2 * SIZE - 1, BEYOND = CELLS;
constexpr int PLANES = 7, VALUES = 32, SYMBOLS = 32, QUANTITIES = 64;

// An array of integers with rows of a few columns.
struct Table {
    const int32_t* data;
    size_t rows, columns;

    const int32_t* operator[](size_t row) const { return data + row * columns; }
};

struct ViewTables { Table around, on_board, joint, quantities; };

// `Definition` of `rows.py`, in its order.
struct Definition {
    Table parts, lookup, symbols, symbol_parts, values, quantities, quantity_parts, barrier;
    ViewTables player, direction;
};
constexpr int DEFINITION_TABLES = sizeof(Definition) / sizeof(Table);

// What lies on a cell of the mirrored board.
struct Piece { int row, col, symbol, content; };

// A record as symbols, mirrored so that the exit lies where rows and columns grow.
class Symbols {
  public:
    Symbols(const Definition& tables, const uint8_t* bytes) : tables(tables) {
        Record record{bytes};
        bool rows = false, cols = false;
        for (int cell = 0; cell < CELLS; cell++) {
            if (!(record.plane(CELL_PLANE, cell) >> 5 & 1)) continue;
            rows |= cell / SIZE < SIZE / 2;
            cols |= cell % SIZE < SIZE / 2;
        }
        auto mirrored = [=](int cell) {
            int row = cell / SIZE, col = cell % SIZE;
            return (rows ? SIZE - 1 - row : row) * SIZE + (cols ? SIZE - 1 - col : col);
        };
        for (int cell = 0; cell < CELLS; cell++) read_cell(record, cell, mirrored(cell));
        for (size_t symbol = 0; symbol < tables.symbols.rows; symbol++)
            content[BEYOND][symbol] = tables.symbols[symbol][1];
        player = mirrored(std::min(record.byte(NumberAt::cell), CELLS - 1));
        read_quantities(bytes);
    }

    // Adds the rows of a view.
    void add_rows(int view, std::vector<int32_t>& to) const {
        const ViewTables& of = view ? tables.direction : tables.player;
        int forward[2] = {1, 0}, row = player / SIZE, col = player % SIZE;
        if (view) {
            forward[0] = ROWS[view - 1], forward[1] = COLS[view - 1];
            row += forward[0], col += forward[1];
        }
        int side[2] = {std::abs(forward[1]), std::abs(forward[0])};
        const int32_t* barrier = tables.barrier[0];
        if (view && content[cell_at(row, col)][barrier[0]] == barrier[1]) return;
        int32_t around[SYMBOLS][3] = {};  // by symbol
        for (size_t i = 0; i < of.around.rows; i++)
            std::copy_n(of.around[i] + 1, 3, around[of.around[i][0]]);
        for (const Piece& piece : pieces) {
            auto [first, size, reach] = around[piece.symbol];
            int rows = piece.row - row, cols = piece.col - col;
            if (!size || std::abs(rows) + std::abs(cols) > reach) continue;
            int along = rows * forward[0] + cols * forward[1], across = rows * side[0] + cols * side[1];
            int offset = (along + SIZE - 1) * REACH + across + SIZE - 1;
            to.push_back(first + offset * size + piece.content - 1);
        }
        for (size_t i = 0; i < of.on_board.rows; i++) {
            const int32_t* table = of.on_board[i];
            for (int cell = 0; cell < CELLS; cell++)
                if (int symbol = content[cell][table[0]])
                    to.push_back(table[1] + cell * table[2] + symbol - 1);
        }
        for (size_t i = 0; i < of.joint.rows;) {
            const int32_t* table = of.joint[i];
            int index = 0;
            for (; i < of.joint.rows && of.joint[i][0] == table[0]; i++) {
                const int32_t* at = of.joint[i];
                int cell = cell_at(row + at[2] * forward[0] + at[3] * side[0],
                                   col + at[2] * forward[1] + at[3] * side[1]);
                index += content[cell][at[4]] * at[5];
            }
            if (index) to.push_back(table[1] + index - 1);
        }
        for (size_t i = 0; i < of.quantities.rows; i++)
            if (int quantity = quantities[of.quantities[i][0]])
                to.push_back(of.quantities[i][1] + quantity - 1);
    }

  private:
    static int cell_at(int row, int col) {
        return row < 0 || row >= SIZE || col < 0 || col >= SIZE ? BEYOND : row * SIZE + col;
    }

    void read_cell(const Record& record, int from, int to) {
        int bytes[PLANES], keys[SYMBOLS] = {}, value = record.plane(VALUE_PLANE, from);
        for (int plane = 0; plane < PLANES - 1; plane++) bytes[plane] = record.plane(plane * CELLS, from);
        bytes[PLANES - 1] = value < NUM_PROGRAMS && record.owned() >> value & 1;
        for (size_t i = 0; i < tables.symbol_parts.rows; i++) {
            const int32_t* part = tables.symbol_parts[i];
            keys[part[0]] += tables.parts[part[2]][bytes[part[1]]];
        }
        for (int symbol = 0; symbol < static_cast<int>(tables.symbols.rows); symbol++) {
            int found = tables.lookup[tables.symbols[symbol][0] + keys[symbol]][0];
            content[to][symbol] = found;
            if (found) pieces.push_back({to / SIZE, to % SIZE, symbol, found});
        }
    }

    void read_quantities(const uint8_t* bytes) {
        auto unsigned_at = [=](int byte, int size) {
            return size == 2 ? bytes[byte] | bytes[byte + 1] << 8 : bytes[byte];
        };
        int values[VALUES], keys[QUANTITIES] = {};
        for (size_t i = 0; i < tables.values.rows; i++) {
            const int32_t* at = tables.values[i];
            int value = unsigned_at(at[0], at[1]);
            if (at[2] >= 0) value -= unsigned_at(at[2], at[1]);
            values[i] = i == 0 ? player : std::clamp(value, 0, 255);
        }
        for (size_t i = 0; i < tables.quantity_parts.rows; i++) {
            const int32_t* part = tables.quantity_parts[i];
            keys[part[0]] += tables.parts[part[2]][values[part[1]]];
        }
        for (size_t i = 0; i < tables.quantities.rows; i++)
            quantities[i] = tables.lookup[tables.quantities[i][0] + keys[i]][0];
    }

    const Definition& tables;
    int player;
    uint8_t content[CELLS + 1][SYMBOLS];
    int quantities[QUANTITIES];
    std::vector<Piece> pieces;
};

// The sums of some rows of weights: four rows at a time, as every pass reads and writes the sums.
inline void sum_rows(const float* weights, size_t width, const std::vector<int32_t>& rows, float* to) {
    auto row = [=, &rows](size_t i) { return weights + rows[i] * width; };
    std::fill_n(to, width, 0.0f);
    size_t i = 0;
    for (; i + 4 <= rows.size(); i += 4) {
        const float *a = row(i), *b = row(i + 1), *c = row(i + 2), *d = row(i + 3);
        for (size_t column = 0; column < width; column++)
            to[column] += (a[column] + b[column]) + (c[column] + d[column]);
    }
    for (; i < rows.size(); i++)
        for (size_t column = 0; column < width; column++) to[column] += row(i)[column];
}

}  // namespace hackmatrix::rows
