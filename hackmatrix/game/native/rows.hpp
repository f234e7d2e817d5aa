// The rows that the network `player_centred` sums of a record: those of `rows_of` in
// `agents/networks/rows.py`, by the tables that it hands over, and the sums of their weights.
#pragma once
#include <vector>

#include "record.hpp"

namespace hackmatrix::rows {

constexpr int VIEWS = 1 + NUM_DIRECTIONS;  // the player's, then one of each direction
constexpr int REACH = 2 * SIZE - 1, BEYOND = CELLS;
constexpr int PLANES = 7;
constexpr size_t VALUES = 32, SYMBOLS = 32, QUANTITIES = 64, JOINED = 64;  // at most

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
constexpr size_t DEFINITION_TABLES = sizeof(Definition) / sizeof(Table);

// Whether there is room for the tables.
inline bool fits(const Definition& of) {
    return of.symbols.rows <= SYMBOLS && of.values.rows <= VALUES &&
           of.quantities.rows <= QUANTITIES && of.player.joint.rows <= JOINED &&
           of.direction.joint.rows <= JOINED;
}

// The tables as records are read by them: what follows from them is worked out once for a batch.
class Reader {
  public:
    explicit Reader(const Definition& tables) : tables(tables) {
        for (size_t i = 0; i < tables.symbol_parts.rows; i++) {
            const int32_t* part = tables.symbol_parts[i];
            parts[part[0]].push_back({part[1], tables.parts[part[2]]});
        }
        for (int view = 0; view < 2; view++) {
            const ViewTables& of = view ? tables.direction : tables.player;
            for (size_t i = 0; i < of.around.rows; i++) {
                const int32_t* table = of.around[i];
                around[view][table[0]] = {table[1], table[2], table[3]};
                has_rows[table[0]] = true;
            }
            for (size_t i = 0; i < of.on_board.rows; i++) {
                const int32_t* table = of.on_board[i];
                on_board[view][table[0]] = {table[1], table[2], 0};
                has_rows[table[0]] = true;
            }
        }
        for (int view = 0; view < VIEWS; view++)
            for (int player = 0; player < CELLS; player++) look(view, player);
    }

    struct Part { int source; const int32_t* of_bytes; };
    struct Rows { int first, size, reach; };  // size 0: there are none
    struct Step { int row, col; };

    // A view from a cell of the player.
    struct Sight {
        int row, col, origin;
        uint8_t cells[JOINED];  // of `ViewTables::joint`
    };

    static Step forward(int view) { return view ? Step{ROWS[view - 1], COLS[view - 1]} : Step{1, 0}; }
    static Step side(Step forward) { return {std::abs(forward.col), std::abs(forward.row)}; }

    const Definition& tables;
    std::vector<Part> parts[SYMBOLS];
    Rows around[2][SYMBOLS] = {}, on_board[2][SYMBOLS] = {};
    bool has_rows[SYMBOLS] = {};
    Sight sights[VIEWS][CELLS];

  private:
    void look(int view, int player) {
        Step ahead = forward(view), aside = side(ahead);
        Sight& sight = sights[view][player];
        sight.row = player / SIZE + (view ? ahead.row : 0);
        sight.col = player % SIZE + (view ? ahead.col : 0);
        auto cell_at = [](int row, int col) {
            return row < 0 || row >= SIZE || col < 0 || col >= SIZE ? BEYOND : row * SIZE + col;
        };
        sight.origin = cell_at(sight.row, sight.col);
        const Table& joint = view ? tables.direction.joint : tables.player.joint;
        for (size_t i = 0; i < joint.rows; i++) {
            int along = joint[i][2], across = joint[i][3];
            sight.cells[i] = uint8_t(cell_at(sight.row + along * ahead.row + across * aside.row,
                                             sight.col + along * ahead.col + across * aside.col));
        }
    }
};

// A record as symbols, mirrored so that the exit lies where rows and columns grow.
class Symbols {
  public:
    explicit Symbols(const Reader& reader) : reader(reader), tables(reader.tables) {
        for (size_t symbol = 0; symbol < tables.symbols.rows; symbol++)
            contents[BEYOND][symbol] = tables.symbols[symbol][1];
    }

    void read(const uint8_t* bytes) {
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
        pieces.clear();
        for (int cell = 0; cell < CELLS; cell++) read_cell(record, cell, mirrored(cell));
        player = mirrored(std::min(record.byte(ScalarAt::cell), CELLS - 1));
        read_quantities(bytes);
    }

    // Adds the rows of a view.
    void add_rows(int view, std::vector<int32_t>& to) const {
        bool turned = view > 0;
        const ViewTables& of = turned ? tables.direction : tables.player;
        const Reader::Sight& sight = reader.sights[view][player];
        const int32_t* barrier = tables.barrier[0];
        if (turned && contents[sight.origin][barrier[0]] == barrier[1]) return;
        Reader::Step ahead = Reader::forward(view), aside = Reader::side(ahead);
        for (const Piece& piece : pieces) {
            int rows = piece.row - sight.row, cols = piece.col - sight.col;
            Reader::Rows table = reader.around[turned][piece.symbol];
            if (table.size && std::abs(rows) + std::abs(cols) <= table.reach) {
                int along = rows * ahead.row + cols * ahead.col;
                int across = rows * aside.row + cols * aside.col;
                int offset = (along + SIZE - 1) * REACH + across + SIZE - 1;
                to.push_back(table.first + offset * table.size + piece.content - 1);
            }
            table = reader.on_board[turned][piece.symbol];
            if (table.size) {
                int cell = piece.row * SIZE + piece.col;
                to.push_back(table.first + cell * table.size + piece.content - 1);
            }
        }
        for (size_t i = 0; i < of.joint.rows;) {
            const int32_t* table = of.joint[i];
            int index = 0;
            for (; i < of.joint.rows && of.joint[i][0] == table[0]; i++)
                index += contents[sight.cells[i]][of.joint[i][4]] * of.joint[i][5];
            if (index) to.push_back(table[1] + index - 1);
        }
        for (size_t i = 0; i < of.quantities.rows; i++)
            if (int quantity = quantities[of.quantities[i][0]])
                to.push_back(of.quantities[i][1] + quantity - 1);
    }

  private:
    struct Piece { int8_t row, col; uint8_t symbol, content; };  // on the mirrored board

    // What a cell shows, kept by its bytes, as most cells look like others.
    struct Look {
        uint64_t key = ~uint64_t{0};
        uint8_t contents[SYMBOLS] = {}, symbols[SYMBOLS] = {};  // `symbols`: those that have rows
        int pieces = 0;
    };

    void read_cell(const Record& record, int from, int to) {
        uint8_t bytes[8] = {};
        for (int plane = 0; plane < PLANES - 1; plane++) bytes[plane] = record.plane(plane * CELLS, from);
        int value = bytes[VALUE_PLANE / CELLS];
        bytes[PLANES - 1] = value < NUM_PROGRAMS && record.owned() >> value & 1;
        uint64_t key;
        std::memcpy(&key, bytes, sizeof key);
        Look& look = looks[key * 0x9E3779B97F4A7C15 >> 55];
        if (look.key != key) look = look_up(key, bytes);
        std::memcpy(contents[to], look.contents, SYMBOLS);
        for (int i = 0; i < look.pieces; i++) {
            uint8_t symbol = look.symbols[i];
            pieces.push_back({int8_t(to / SIZE), int8_t(to % SIZE), symbol, look.contents[symbol]});
        }
    }

    // What cells with these bytes show.
    Look look_up(uint64_t key, const uint8_t* bytes) const {
        Look look{key};
        for (size_t symbol = 0; symbol < tables.symbols.rows; symbol++) {
            int at = tables.symbols[symbol][0];
            for (const Reader::Part& part : reader.parts[symbol]) at += part.of_bytes[bytes[part.source]];
            look.contents[symbol] = uint8_t(tables.lookup[at][0]);
            if (look.contents[symbol] && reader.has_rows[symbol])
                look.symbols[look.pieces++] = uint8_t(symbol);
        }
        return look;
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

    const Reader& reader;
    const Definition& tables;
    int player;
    uint8_t contents[CELLS + 1][SYMBOLS] = {};
    int quantities[QUANTITIES];
    std::vector<Piece> pieces;
    std::vector<Look> looks = std::vector<Look>(512);
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
