// The rows that the network `player_centred` sums of a record: those of `rows_of` in
// `agents/networks/rows.py`, by the tables that it hands over, and the sums of their weights.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "record.hpp"

namespace hackmatrix::rows {

constexpr int VIEWS = 1 + NUM_DIRECTIONS;  // the player's, then one of each direction
constexpr int REACH = 2 * SIZE - 1, BEYOND = CELLS;
constexpr int PLANES = 7;
constexpr size_t VALUES = 32, SYMBOLS = 16, QUANTITIES = 48, JOINED = 64;  // at most
constexpr size_t MOST = 2 * CELLS * SYMBOLS + JOINED + QUANTITIES + 1;  // rows of a view, and a free place

// Keys of symbols, sums of what bytes add to them: vectors, as compilers make none of loops.
template <size_t COUNT> struct Keys {
    typedef int16_t Vector __attribute__((vector_size(32)));
    Vector vectors[COUNT / 16] = {};
    void operator+=(const Keys& other) {
        for (size_t i = 0; i < COUNT / 16; i++) vectors[i] += other.vectors[i];
    }
    void add(size_t key, int32_t part) { vectors[key / 16][key % 16] += int16_t(part); }
    int16_t operator[](size_t key) const { return vectors[key / 16][key % 16]; }
};

// An array of integers with rows of a few columns.
struct Table {
    const int32_t* data;
    size_t rows, columns;

    const int32_t* operator[](size_t row) const { return data + row * columns; }
    size_t size() const { return rows * columns; }
    bool operator==(const Table& other) const {
        return rows == other.rows && columns == other.columns &&
               std::equal(data, data + size(), other.data);
    }
};

struct ViewTables { Table around, on_board, joint, quantities; };

// `Definition` of `rows.py`, in its order.
struct Definition {
    Table parts, lookup, symbols, symbol_parts, values, quantities, quantity_parts, barrier;
    ViewTables player, direction;
};
constexpr size_t DEFINITION_TABLES = sizeof(Definition) / sizeof(Table);

inline Table* tables_of(Definition& of) { return reinterpret_cast<Table*>(&of); }
inline const Table* tables_of(const Definition& of) { return reinterpret_cast<const Table*>(&of); }

// Whether there is room for the tables.
inline bool fits(const Definition& of) {
    return of.symbols.rows <= SYMBOLS && of.values.rows <= VALUES &&
           of.quantities.rows <= QUANTITIES && of.player.joint.rows <= JOINED &&
           of.direction.joint.rows <= JOINED;
}

// Tables of its own, and what follows from them for all records.
class Reader {
  public:
    explicit Reader(const Definition& definition) : tables(definition) {
        for (size_t i = 0; i < DEFINITION_TABLES; i++) {
            Table& own = tables_of(tables)[i];
            numbers[i].assign(own.data, own.data + own.size());
            own.data = numbers[i].data();
        }
        for (size_t i = 0; i < tables.symbols.rows; i++) symbol_keys.add(i, tables.symbols[i][0]);
        for (size_t i = 0; i < tables.quantities.rows; i++) quantity_keys.add(i, tables.quantities[i][0]);
        for (int plane = 0; plane < PLANES; plane++)
            planes[plane] = parts_of<SYMBOLS>(plane, tables.symbol_parts);
        for (size_t i = 0; i < tables.values.rows; i++) {
            auto& of = values[i] = parts_of<QUANTITIES>(int(i), tables.quantity_parts);
            while (of.size() > 1 && !std::memcmp(&of.back(), &of.back() - 1, sizeof of[0])) of.pop_back();
        }
        for (int view = 0; view < 2; view++) {
            const ViewTables& of = view ? tables.direction : tables.player;
            for (const Table* kind : {&of.around, &of.on_board})
                for (size_t i = 0; i < kind->rows; i++) {
                    const int32_t* table = (*kind)[i];
                    if (kind == &of.around) around[view][table[0]] = {table[1] - 1, table[2], table[3]};
                    else on_board[view][table[0]] = {table[1] - 1, table[2], 0};
                    with_rows[table[0] / 8] |= uint64_t{255} << table[0] % 8 * 8;
                }
        }
        for (int view = 0; view < VIEWS; view++)
            for (int player = 0; player < CELLS; player++) look(view, player);
    }

    struct Rows { int before = 0, size = 0, reach = -1; };  // before the first; size 0: there are none
    struct Step { int row, col; };

    // A view from a cell of the player.
    struct Sight {
        int origin;
        int16_t offsets[CELLS], steps[CELLS];  // of the cells of the board
        uint16_t joint[JOINED];  // symbols of `ViewTables::joint` among `Symbols::contents`
    };

    Reader(const Reader&) = delete;

    bool reads(const Definition& of) const {
        return std::equal(tables_of(tables), tables_of(tables) + DEFINITION_TABLES, tables_of(of));
    }

    Definition tables;
    Keys<SYMBOLS> symbol_keys;
    Keys<QUANTITIES> quantity_keys;
    std::vector<Keys<SYMBOLS>> planes[PLANES];
    std::vector<Keys<QUANTITIES>> values[VALUES];  // the last of one is of larger values too
    Rows around[2][SYMBOLS], on_board[2][SYMBOLS];
    uint64_t with_rows[SYMBOLS / 8] = {};  // a byte of ones for symbols of which there are rows
    Sight sights[VIEWS][CELLS];

  private:
    std::vector<int32_t> numbers[DEFINITION_TABLES];

    // What the bytes of a source add to the keys.
    template <size_t COUNT> std::vector<Keys<COUNT>> parts_of(int source, const Table& all) const {
        std::vector<Keys<COUNT>> parts(256);
        for (size_t i = 0; i < all.rows; i++)
            for (size_t byte = 0; byte < 256 && all[i][1] == source; byte++)
                parts[byte].add(all[i][0], tables.parts[all[i][2]][byte]);
        return parts;
    }

    void look(int view, int player) {
        Step ahead = view ? Step{ROWS[view - 1], COLS[view - 1]} : Step{1, 0};
        Step aside{std::abs(ahead.col), std::abs(ahead.row)};
        Sight& sight = sights[view][player];
        int row = player / SIZE + (view ? ahead.row : 0), col = player % SIZE + (view ? ahead.col : 0);
        auto cell_at = [=](int along, int across) {
            int to_row = row + along * ahead.row + across * aside.row;
            int to_col = col + along * ahead.col + across * aside.col;
            bool is_on_board = to_row >= 0 && to_row < SIZE && to_col >= 0 && to_col < SIZE;
            return is_on_board ? to_row * SIZE + to_col : BEYOND;
        };
        sight.origin = cell_at(0, 0);
        for (int cell = 0; cell < CELLS; cell++) {
            int rows = cell / SIZE - row, cols = cell % SIZE - col;
            int along = rows * ahead.row + cols * ahead.col, across = rows * aside.row + cols * aside.col;
            sight.offsets[cell] = int16_t((along + SIZE - 1) * REACH + across + SIZE - 1);
            sight.steps[cell] = int16_t(std::abs(rows) + std::abs(cols));
        }
        const Table& joint = view ? tables.direction.joint : tables.player.joint;
        for (size_t i = 0; i < joint.rows; i++)
            sight.joint[i] = uint16_t(cell_at(joint[i][2], joint[i][3]) * int(SYMBOLS) + joint[i][4]);
    }
};

// A reader of these tables. The last is kept: to make one takes as long as to read a hundred records.
inline std::shared_ptr<const Reader> reader_of(const Definition& tables) {
    static std::mutex mutex;
    static std::shared_ptr<const Reader> last;
    std::lock_guard<std::mutex> lock(mutex);
    if (!last || !last->reads(tables)) last = std::make_shared<const Reader>(tables);
    return last;
}

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
        auto mirrored = [=](int cell) {
            int row = cell / SIZE, col = cell % SIZE;
            return (rows ? SIZE - 1 - row : row) * SIZE + (cols ? SIZE - 1 - col : col);
        };
        end = pieces;
        for (int cell = 0; cell < CELLS; cell++) read_cell(record, cell, mirrored(cell));
        player = mirrored(std::min(record.byte(ScalarAt::cell), CELLS - 1));
        read_quantities(bytes);
    }

    // Writes the rows of a view, at most MOST, and returns their end: each is written, and kept if it
    // is there, which can't be predicted.
    int32_t* write_rows(int view, int32_t* to) const {
        bool turned = view > 0;
        const ViewTables& of = turned ? tables.direction : tables.player;
        const Reader::Sight& sight = reader.sights[view][player];
        const int32_t* closed = tables.barrier[0];
        if (turned && contents[sight.origin * SYMBOLS + closed[0]] == closed[1]) return to;
        for (const Piece* piece = pieces; piece < end; piece++) {
            int cell = *piece & 255, symbol = *piece >> 8 & 255, content = *piece >> 16;
            Reader::Rows table = reader.around[turned][symbol];
            *to = table.before + sight.offsets[cell] * table.size + content;
            to += sight.steps[cell] <= table.reach;
            if (!of.on_board.rows) continue;
            table = reader.on_board[turned][symbol];
            *to = table.before + cell * table.size + content;
            to += table.size > 0;
        }
        for (size_t i = 0; i < of.joint.rows; to++) {
            const int32_t* table = of.joint[i];
            int index = 0;
            for (; i < of.joint.rows && of.joint[i][0] == table[0]; i++)
                index += contents[sight.joint[i]] * of.joint[i][5];
            *to = table[1] + index - 1;
            to -= !index;
        }
        for (size_t i = 0; i < of.quantities.rows; i++) {
            int quantity = quantities[of.quantities[i][0]];
            *to = of.quantities[i][1] + quantity - 1;
            to += quantity > 0;
        }
        return to;
    }

  private:
    using Piece = uint32_t;  // cell of the mirrored board, symbol << 8, content << 16

    void read_cell(const Record& record, int from, int to) {
        auto keys = reader.symbol_keys;
        for (int plane = 0; plane < PLANES - 1; plane++)
            keys += reader.planes[plane][record.plane(plane * CELLS, from)];
        int value = record.plane(VALUE_PLANE, from);
        keys += reader.planes[PLANES - 1][value < NUM_PROGRAMS && record.owned() >> value & 1];
        for (size_t first = 0; first < SYMBOLS; first += 8) {
            uint64_t bytes = 0;
            for (size_t i = 0; i < 8; i++) bytes |= uint64_t(tables.lookup[keys[first + i]][0]) << 8 * i;
            std::memcpy(contents + to * SYMBOLS + first, &bytes, 8);
            for (bytes &= reader.with_rows[first / 8]; bytes;) {
                int bit = __builtin_ctzll(bytes) & ~7;
                *end++ = Piece(to | (first + bit / 8) << 8 | (bytes >> bit & 255) << 16);
                bytes &= ~(uint64_t{255} << bit);
            }
        }
    }

    void read_quantities(const uint8_t* bytes) {
        auto unsigned_at = [=](int at, int size) { return bytes[at] | (size == 2 ? bytes[at + 1] << 8 : 0); };
        auto keys = reader.quantity_keys;
        for (size_t i = 0; i < tables.values.rows; i++) {
            const int32_t* at = tables.values[i];
            int value = i == 0 ? player : unsigned_at(at[0], at[1]);
            if (at[2] >= 0) value -= unsigned_at(at[2], at[1]);
            keys += reader.values[i][std::clamp(value, 0, int(reader.values[i].size()) - 1)];
        }
        for (size_t i = 0; i < QUANTITIES; i++) quantities[i] = tables.lookup[keys[i]][0];
    }

    const Reader& reader;
    const Definition& tables;
    int player;
    uint8_t contents[(CELLS + 1) * SYMBOLS] = {};
    int quantities[QUANTITIES];
    Piece pieces[CELLS * SYMBOLS], *end = pieces;
};

// The sums of some rows of weights: four rows at a time, as every pass reads and writes the sums.
inline void sum_rows(const float* weights, size_t width, const int32_t* row, const int32_t* end, float* to) {
    auto at = [=](int32_t row) { return weights + row * width; };
    std::fill_n(to, width, 0.0f);
    for (; row + 4 <= end; row += 4) {
        const float *a = at(row[0]), *b = at(row[1]), *c = at(row[2]), *d = at(row[3]);
        for (size_t column = 0; column < width; column++)
            to[column] += (a[column] + b[column]) + (c[column] + d[column]);
    }
    for (; row < end; row++)
        for (size_t column = 0; column < width; column++) to[column] += at(*row)[column];
}

// Adds a gradient to that of a row of weights.
inline void add_to_row(float* weights, const float* gradient, size_t width) {
    for (size_t column = 0; column < width; column++) weights[column] += gradient[column];
}

}  // namespace hackmatrix::rows
