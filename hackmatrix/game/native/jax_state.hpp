// A game as the words of the JAX engine's `State`, in the order of its leaves, and back.
#pragma once
#include "legality.hpp"

namespace hackmatrix {

constexpr int SET32 = 1, SET36 = 2;  // words of a set: 32 bits in one, 18 bits in each of two

// Takes a game from words; the functions are those of `ToWords`.
struct FromWords {
    const uint32_t* next;
    bool fits = true;  // whether each word so far was in the range of what it stands for

    void expect(bool holds) { fits &= holds; }

    template <class Scalar>
    void scalar(Scalar& to) {
        to = static_cast<Scalar>(*next);
        expect(static_cast<uint32_t>(to) == *next++);
    }
    void count(uint8_t& to, int most) {
        expect(*next <= static_cast<uint32_t>(most));
        to = static_cast<uint8_t>(fits ? *next : 0);
        next++;
    }
    template <int WORDS = SET36>
    void cells(CellSet& to) {
        to = *next++;
        if (WORDS == SET32) return;
        expect(to < of(CELLS / 2) && *next < of(CELLS / 2));
        to |= CellSet{*next++} << CELLS / 2;
    }
    template <int WORDS, class At>
    void planes(int bits, int size, At at) {
        ROLLED for (int index = 0; index < size; index++) at(index) = 0;
        ROLLED for (int bit = 0; bit < bits; bit++) {
            CellSet plane;
            cells<WORDS>(plane);
            ROLLED for (int index = 0; index < size; index++)
                at(index) = at(index) | (plane >> index & 1) << bit;
        }
    }
};

// Writes a game into words: a scalar as one, a set as one or two, a value of each member as the
// sets of members that have each of its bits.
struct ToWords {
    uint32_t* next;

    void expect(bool) {}

    template <class Scalar>
    void scalar(const Scalar& from) {
        *next++ = static_cast<uint32_t>(from);
    }
    void count(uint8_t from, int) { scalar(from); }
    template <int WORDS = SET36>
    void cells(CellSet from) {
        constexpr CellSet low = WORDS == SET36 ? of(CELLS / 2) - 1 : ~uint32_t{0};
        *next++ = static_cast<uint32_t>(from & low);
        if (WORDS == SET36) *next++ = static_cast<uint32_t>(from >> CELLS / 2);
    }
    template <int WORDS, class At>
    void planes(int bits, int size, At at) {
        ROLLED for (int bit = 0; bit < bits; bit++) {
            CellSet plane = 0;
            ROLLED for (int index = 0; index < size; index++)
                plane |= CellSet(at(index) >> bit & 1) << index;
            cells<WORDS>(plane);
        }
    }
};

// The planes of rows, then those of columns, of as many cells.
template <int WORDS, class Words, class At>
constexpr void coordinates(Words& words, int size, At at) {
    uint8_t rows[CELLS] = {}, cols[CELLS] = {};
    ROLLED for (int i = 0; i < size; i++) rows[i] = row(at(i)), cols[i] = col(at(i));
    words.template planes<WORDS>(3, size, [&](int i) -> uint8_t& { return rows[i]; });
    words.template planes<WORDS>(3, size, [&](int i) -> uint8_t& { return cols[i]; });
    ROLLED for (int i = 0; i < size; i++) {
        words.expect(on_board(rows[i], cols[i]));
        at(i) = rows[i] * SIZE + cols[i];
    }
}

// One fact of all pieces of a list.
#define EACH(list, fact) [&](int i) -> auto& { return position.list[i].fact; }

template <class Words>
constexpr void exchange(Words& words, Position& position) {
    Player& player = position.player;
    words.scalar(player.cell);
    words.scalar(player.hp);
    for (int16_t* scalar : {&player.credits, &player.energy, &player.siphons, &player.attack,
                            &player.score})
        words.scalar(*scalar);
    Cells& cells = position.cells;
    for (CellSet* set : {&cells.blocks, &cells.data, &cells.questions, &cells.siphons,
                         &cells.siphoned, &cells.center})
        words.cells(*set);
    auto of_cells = [&](uint8_t* values, int bits) {
        words.template planes<SET36>(bits, CELLS, [=](int i) -> uint8_t& { return values[i]; });
    };
    of_cells(cells.credits, 2);
    of_cells(cells.energy, 2);
    of_cells(cells.value, 5);
    of_cells(cells.spawn, 7);
    words.count(position.enemies.count, MAX_ENEMIES);
    int enemies = position.enemies.count;
    coordinates<SET32>(words, enemies, EACH(enemies, cell));
    words.template planes<SET32>(2, enemies, EACH(enemies, type));
    words.template planes<SET32>(2, enemies, EACH(enemies, hp));
    words.template planes<SET32>(7, enemies, EACH(enemies, disabled));
    words.template planes<SET32>(1, enemies, EACH(enemies, stunned));
    words.template planes<SET32>(1, enemies, EACH(enemies, from_schedule));
    words.template planes<SET32>(1, enemies, EACH(enemies, from_siphon));
    coordinates<SET32>(words, enemies, EACH(enemies, last));
    words.count(position.transmissions.count, MAX_TRANSMISSIONS);
    int coming = position.transmissions.count;
    coordinates<SET36>(words, coming, EACH(transmissions, cell));
    words.template planes<SET36>(15, coming, EACH(transmissions, turns));
    words.template planes<SET36>(2, coming, EACH(transmissions, type));
    words.template planes<SET36>(1, coming, EACH(transmissions, from_schedule));
    words.template planes<SET36>(1, coming, EACH(transmissions, from_siphon));
    words.scalar(position.owned);
    words.expect(!(position.owned >> NUM_PROGRAMS));
    // Without the test, CUDA's count of bits, which is no constant, would be in `num_words`.
    int owned = position.owned ? std::min(size(position.owned), NUM_PROGRAMS) : 0;
    words.template planes<SET32>(5, owned,
                                 [&](int i) -> uint8_t& { return position.acquired[i]; });
    words.scalar(position.turn);
    words.scalar(position.show);
    words.scalar(position.calm);
    words.scalar(position.atk_uses);
}

#undef EACH

template <class Words>
constexpr void exchange(Words& words, State& state) {
    exchange(words, static_cast<Position&>(state));
    for (uint32_t* word : {&state.dice.stream, &state.dice.episode, &state.dice.clock})
        words.scalar(*word);
    words.scalar(state.exit);
    words.scalar(state.stage);
    for (int16_t* scalar : {&state.interval, &state.next_task, &state.pending})
        words.scalar(*scalar);
    words.scalar(state.step);
    CellSet enemies_at = state.enemies.cells(), transmissions_at = state.transmissions.cells();
    words.cells(enemies_at);
    words.cells(transmissions_at);
    words.expect(enemies_at == state.enemies.cells());
    words.expect(transmissions_at == state.transmissions.cells());
    words.scalar(state.saved);
    words.scalar(state.newest_saved);
    words.scalar(state.over);
}

// Counts words.
struct WordCount {
    size_t words = 0;

    constexpr void expect(bool) {}
    template <class Scalar>
    constexpr void scalar(const Scalar&) { words++; }
    constexpr void count(uint8_t, int) { words++; }
    template <int WORDS = SET36>
    constexpr void cells(CellSet) { words += WORDS; }
    template <int WORDS, class At>
    constexpr void planes(int bits, int, At) { words += WORDS * bits; }
};

template <class Struct>
constexpr size_t num_words() {
    Struct empty{};
    WordCount count;
    exchange(count, empty);
    return count.words;
}

constexpr size_t STATE_WORDS = num_words<State>(), POSITION_WORDS = num_words<Position>();

// A position from its words, if all of them are in range.
template <class Struct>
bool read(const uint32_t* words, Struct& to) {
    FromWords from{words};
    to = {};
    exchange(from, to);
    return from.fits;
}

// Takes a game from its words; returns the part that is not legal, or null.
inline const char* take_words(const uint32_t* words, State& to) {
    const char* part = read(words, to) ? fault(to) : "a number out of range";
    if (part) to = {};
    return part;
}

// Takes the saved positions of a legal game from its rows; returns the part that is not legal, or
// null. A row that is not in use may hold anything.
inline const char* take_rows(const uint32_t* rows, const State& state, SavedPositions& to) {
    const char* part = nullptr;
    for (int index = 0; index < MAX_SAVED_STATES; index++) {
        Position& position = to.positions[index];
        if (read(rows + index * POSITION_WORDS, position) && !fault(position)) continue;
        position = {};
        if (is_in_use(state, index)) part = "the positions for UNDO";
    }
    return part ? part : fault(state, to);
}

}  // namespace hackmatrix
