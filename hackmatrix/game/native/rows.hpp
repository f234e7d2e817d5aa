// The rows that the network `player_centred` sums of a record: those of `rows_of` in
// `agents/networks/rows.py`, by the tables that it hands over, and the sums of their weights.
#pragma once
#include <vector>

#include "record.hpp"

namespace hackmatrix::rows {

constexpr int VIEWS = 1 + NUM_DIRECTIONS;  // the player's, then one of each direction
constexpr int REACH = 2 * SIZE - 1, BEYOND = CELLS;
constexpr int PLANES = 7;
constexpr size_t VALUES = 32, SYMBOLS = 16, QUANTITIES = 48, JOINED = 64;  // at most
constexpr size_t MOST = 2 * CELLS * SYMBOLS + JOINED + QUANTITIES + 1;  // rows of a view, and a free place

// Keys of symbols, which are sums of what bytes add to them; as vectors, for the compiler's sake.
typedef int16_t Keys __attribute__((vector_size(32)));
constexpr size_t KEYS = sizeof(Keys) / sizeof(int16_t);
static_assert(SYMBOLS == KEYS && QUANTITIES % KEYS == 0);
template <size_t COUNT> struct KeyVector {
    Keys vectors[COUNT / KEYS] = {};

    void operator+=(const KeyVector& other) {
        for (size_t i = 0; i < COUNT / KEYS; i++) vectors[i] += other.vectors[i];
    }
    void add(size_t key, int32_t part) { vectors[key / KEYS][key % KEYS] += int16_t(part); }
    int16_t operator[](size_t key) const { return vectors[key / KEYS][key % KEYS]; }
};

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
    template <size_t COUNT> using Parts = std::vector<KeyVector<COUNT>>;
    struct Rows { int before = 0, size = 0, reach = -1; };  // `before` the first one; size 0: none
    struct Tuple { size_t end; int before; };  // its last cell in `joint`, and the row before its first

    // The tables of a view.
    struct View {
        Rows around[SYMBOLS], on_board[SYMBOLS];
        bool reads_board = false;  // there are tables on the board
        std::vector<Tuple> tuples;
        std::vector<int> times;  // of the cells in `joint`
        std::vector<std::pair<size_t, int>> quantities;  // and the row before the first
    };

    // A view from a cell of the player, on the mirrored board.
    struct Sight {
        int origin;  // the cell that it looks from
        int16_t offsets[CELLS];  // of each cell: the number of its offset
        int8_t steps[CELLS];  // how many steps that is
        uint16_t joint[JOINED];  // symbols of cells, as indices of all contents
    };

    explicit Reader(const Definition& tables) : tables(tables) {
        for (size_t i = 0; i < tables.symbols.rows; i++) starts.add(i, tables.symbols[i][0]);
        for (size_t i = 0; i < tables.lookup.rows; i++) lookup.push_back(uint8_t(tables.lookup[i][0]));
        for (size_t i = 0; i < tables.symbol_parts.rows; i++) {
            const int32_t* part = tables.symbol_parts[i];
            for (int byte = 0; byte < 256; byte++)
                parts[part[1] * 256 + byte].add(part[0], tables.parts[part[2]][byte]);
        }
        for (size_t i = 0; i < tables.quantities.rows; i++)
            quantity_starts.add(i, tables.quantities[i][0]);
        for (size_t i = 0; i < tables.values.rows; i++) read_value(int(i));
        read(tables.player, player);
        read(tables.direction, direction);
        for (int view = 0; view < VIEWS; view++)
            for (int player = 0; player < CELLS; player++) look(view, player);
    }

    const View& view(int number) const { return number ? direction : player; }

    const Definition& tables;
    KeyVector<SYMBOLS> starts;  // of the symbols' keys
    Parts<SYMBOLS> parts{PLANES * 256};  // what a plane's byte adds to the keys
    std::vector<uint8_t> lookup;
    KeyVector<QUANTITIES> quantity_starts;
    Parts<QUANTITIES> value_parts[VALUES];  // what a value adds to those of quantities; the last for larger ones
    uint8_t with_rows[SYMBOLS] = {};  // 255 for symbols of which there are rows
    Sight sights[VIEWS][CELLS];

  private:
    void read_value(int value) {
        std::vector<std::pair<int, const int32_t*>> of_value;  // quantities, and what a byte adds
        size_t size = 1;
        for (size_t i = 0; i < tables.quantity_parts.rows; i++) {
            const int32_t *part = tables.quantity_parts[i], *of_bytes = tables.parts[part[2]];
            if (part[1] != value) continue;
            of_value.emplace_back(part[0], of_bytes);
            for (size_t byte = size; byte < 256; byte++)
                if (of_bytes[byte] != of_bytes[byte - 1]) size = byte + 1;
        }
        value_parts[value].resize(size);
        for (auto [quantity, of_bytes] : of_value)
            for (size_t byte = 0; byte < size; byte++)
                value_parts[value][byte].add(quantity, of_bytes[byte]);
    }

    void read(const ViewTables& from, View& to) {
        for (size_t i = 0; i < from.around.rows; i++) {
            const int32_t* table = from.around[i];
            to.around[table[0]] = {table[1] - 1, table[2], table[3]};
            with_rows[table[0]] = 255;
        }
        for (size_t i = 0; i < from.on_board.rows; i++) {
            const int32_t* table = from.on_board[i];
            to.on_board[table[0]] = {table[1] - 1, table[2]};
            to.reads_board = true;
            with_rows[table[0]] = 255;
        }
        for (size_t i = 0; i < from.joint.rows; i++) {
            const int32_t* cell = from.joint[i];
            if (i == 0 || cell[0] != from.joint[i - 1][0]) to.tuples.push_back({0, cell[1] - 1});
            to.tuples.back().end = i + 1;
            to.times.push_back(cell[5]);
        }
        for (size_t i = 0; i < from.quantities.rows; i++)
            to.quantities.emplace_back(from.quantities[i][0], from.quantities[i][1] - 1);
    }

    void look(int view, int player) {
        int ahead[] = {1, 0};  // rows and columns of a step forward
        if (view) ahead[0] = ROWS[view - 1], ahead[1] = COLS[view - 1];
        int aside[] = {std::abs(ahead[1]), std::abs(ahead[0])};
        Sight& sight = sights[view][player];
        int row = player / SIZE + (view ? ahead[0] : 0), col = player % SIZE + (view ? ahead[1] : 0);
        auto cell_at = [](int row, int col) {
            return row < 0 || row >= SIZE || col < 0 || col >= SIZE ? BEYOND : row * SIZE + col;
        };
        sight.origin = cell_at(row, col);
        for (int cell = 0; cell < CELLS; cell++) {
            int rows = cell / SIZE - row, cols = cell % SIZE - col;
            int along = rows * ahead[0] + cols * ahead[1], across = rows * aside[0] + cols * aside[1];
            sight.offsets[cell] = int16_t((along + SIZE - 1) * REACH + across + SIZE - 1);
            sight.steps[cell] = int8_t(std::abs(rows) + std::abs(cols));
        }
        const Table& joint = view ? tables.direction.joint : tables.player.joint;
        for (size_t i = 0; i < joint.rows; i++) {
            int along = joint[i][2], across = joint[i][3];
            int cell = cell_at(row + along * ahead[0] + across * aside[0],
                               col + along * ahead[1] + across * aside[1]);
            sight.joint[i] = uint16_t(cell * int(SYMBOLS) + joint[i][4]);
        }
    }

    View player, direction;
};

// A record as symbols, mirrored so that the exit lies where rows and columns grow.
class Symbols {
  public:
    explicit Symbols(const Reader& reader) : reader(reader), tables(reader.tables) {
        for (size_t symbol = 0; symbol < tables.symbols.rows; symbol++)
            contents[BEYOND * SYMBOLS + symbol] = uint8_t(tables.symbols[symbol][1]);
    }

    void read(const uint8_t* bytes) {
        Record record{bytes};
        bool rows = false, cols = false;
        for (int cell = 0; cell < CELLS; cell++) {
            if (!(record.plane(CELL_PLANE, cell) >> 5 & 1)) continue;
            rows |= cell / SIZE < SIZE / 2;
            cols |= cell % SIZE < SIZE / 2;
        }
        auto mirrored = [=](int row, int col) {
            return (rows ? SIZE - 1 - row : row) * SIZE + (cols ? SIZE - 1 - col : col);
        };
        end = pieces;
        uint32_t owned = record.owned();
        for (int row = 0; row < SIZE; row++)
            for (int col = 0; col < SIZE; col++)
                read_cell(record, owned, row * SIZE + col, mirrored(row, col));
        int cell = std::min(record.byte(ScalarAt::cell), CELLS - 1);
        player = mirrored(cell / SIZE, cell % SIZE);
        read_quantities(bytes);
    }

    // Writes the rows of a view, at most MOST; returns their end. Each is written, and kept if it is
    // there: whether it is can't be predicted.
    int32_t* write_rows(int view, int32_t* to) const {
        const Reader::View& of = reader.view(view);
        const Reader::Sight& sight = reader.sights[view][player];
        const int32_t* barrier = tables.barrier[0];
        if (view && contents[sight.origin * SYMBOLS + barrier[0]] == barrier[1]) return to;
        for (const Piece* piece = pieces; piece < end; piece++) {
            int cell = *piece & 255, symbol = *piece >> 8 & 255, content = *piece >> 16;
            const Reader::Rows& around = of.around[symbol];
            *to = around.before + sight.offsets[cell] * around.size + content;
            to += sight.steps[cell] <= around.reach;
            if (!of.reads_board) continue;
            const Reader::Rows& on_board = of.on_board[symbol];
            *to = on_board.before + cell * on_board.size + content;
            to += on_board.size > 0;
        }
        size_t i = 0;
        for (const Reader::Tuple& tuple : of.tuples) {
            int index = 0;
            for (; i < tuple.end; i++) index += contents[sight.joint[i]] * of.times[i];
            *to = tuple.before + index;
            to += index > 0;
        }
        for (auto [number, before] : of.quantities) {
            *to = before + quantities[number];
            to += quantities[number] > 0;
        }
        return to;
    }

  private:
    using Piece = uint32_t;  // cell of the mirrored board, symbol << 8, content << 16

    void read_cell(const Record& record, uint32_t owned, int from, int to) {
        auto keys = reader.starts;
        int value = record.plane(VALUE_PLANE, from);
        int is_owned = value < NUM_PROGRAMS ? owned >> value & 1 : 0;
        for (int plane = 0; plane < PLANES; plane++) {
            int byte = plane < PLANES - 1 ? record.plane(plane * CELLS, from) : is_owned;
            keys += reader.parts[plane * 256 + byte];
        }
        for (size_t first = 0; first < SYMBOLS; first += 8) {
            uint64_t bytes = 0, kept;
            for (size_t i = 0; i < 8; i++) bytes |= uint64_t{reader.lookup[keys[first + i]]} << 8 * i;
            std::memcpy(contents + to * SYMBOLS + first, &bytes, 8);
            std::memcpy(&kept, reader.with_rows + first, 8);
            int bit;
            for (bytes &= kept; bytes; bytes &= ~(uint64_t{255} << bit)) {
                bit = __builtin_ctzll(bytes) & ~7;
                *end++ = Piece(to | (first + bit / 8) << 8 | (bytes >> bit & 255) << 16);
            }
        }
    }

    void read_quantities(const uint8_t* bytes) {
        auto unsigned_at = [=](int byte, int size) {
            return size == 2 ? bytes[byte] | bytes[byte + 1] << 8 : bytes[byte];
        };
        auto keys = reader.quantity_starts;
        for (size_t i = 0; i < tables.values.rows; i++) {
            const int32_t* at = tables.values[i];
            int value = i == 0 ? player : unsigned_at(at[0], at[1]);
            if (at[2] >= 0) value -= unsigned_at(at[2], at[1]);
            const auto& of_value = reader.value_parts[i];
            keys += of_value[std::clamp(value, 0, int(of_value.size()) - 1)];
        }
        for (size_t i = 0; i < QUANTITIES; i++) quantities[i] = reader.lookup[keys[i]];
    }

    const Reader& reader;
    const Definition& tables;
    int player;
    uint8_t contents[(CELLS + 1) * SYMBOLS] = {};
    int quantities[QUANTITIES];
    Piece pieces[CELLS * SYMBOLS], *end = pieces;
};

// The sums of some rows of weights: four rows at a time, as every pass reads and writes the sums.
inline void sum_rows(const float* weights, size_t width, const int32_t* rows, const int32_t* end, float* to) {
    auto at = [=](int32_t row) { return weights + row * width; };
    std::fill_n(to, width, 0.0f);
    for (; rows + 4 <= end; rows += 4) {
        const float *a = at(rows[0]), *b = at(rows[1]), *c = at(rows[2]), *d = at(rows[3]);
        for (size_t column = 0; column < width; column++)
            to[column] += (a[column] + b[column]) + (c[column] + d[column]);
    }
    for (; rows < end; rows++)
        for (size_t column = 0; column < width; column++) to[column] += at(*rows)[column];
}

}  // namespace hackmatrix::rows
