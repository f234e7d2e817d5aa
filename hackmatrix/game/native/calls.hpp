// The custom calls for XLA, each as what it does for one game: on CPUs (`xla.cpp`) and on NVIDIA's
// GPUs (`kernels.cu`).
//
// A call takes arrays with a row for each game, arguments first, then results; `BYTES` has the size
// of a row of each. `play` returns the part of the game that is not legal, or null.
#pragma once
#include "env_step.hpp"
#include "imagination.hpp"
#include "jax_state.hpp"
#include "tactical.hpp"

namespace hackmatrix {

using Arrays = void* const*;

// The row of a game in an array.
template <class Row>
Row& row_of(void* array, size_t game) {
    return static_cast<Row*>(array)[game];
}

// Rows that are no structs.
struct RecordRow { uint8_t bytes[RECORD_SIZE]; };
struct MemoryRow { uint8_t bytes[MAX_SAVED_STATES * RECORD_SIZE]; };
struct StateRow { uint32_t words[STATE_WORDS]; };
struct SavedRow { uint32_t words[MAX_SAVED_STATES * POSITION_WORDS]; };

struct ResetCall {
    static constexpr size_t BYTES[] = {4, 4, sizeof(State), sizeof(SavedPositions), 4};

    static const char* play(Arrays at, size_t game) {
        State& state = row_of<State>(at[2], game);
        std::memset(static_cast<SavedPositions*>(at[3]) + game, 0, sizeof(SavedPositions));
        new_game(state, row_of<uint32_t>(at[0], game), row_of<uint32_t>(at[1], game));
        row_of<uint32_t>(at[4], game) = valid_actions(state);
        return nullptr;
    }
};

struct ObserveCall {
    static constexpr size_t BYTES[] = {sizeof(State), RECORD_SIZE};

    static const char* play(Arrays at, size_t game) {
        const State& state = row_of<State>(at[0], game);
        const char* part = fault(state);
        RecordRow& to = row_of<RecordRow>(at[1], game);
        if (part) to = {};
        else observe(state, to.bytes);
        return part;
    }
};

struct MasksCall {
    static constexpr size_t BYTES[] = {sizeof(State), 4};

    static const char* play(Arrays at, size_t game) {
        const State& state = row_of<State>(at[0], game);
        const char* part = fault(state);
        row_of<uint32_t>(at[1], game) = part ? 0 : valid_actions(state);
        return part;
    }
};

struct StepCall {
    static constexpr int GAMES = 4;  // arrays that are arguments and results
    static constexpr size_t BYTES[] = {
        sizeof(State), sizeof(SavedPositions), 4, 4, 4,  // the games, their returns, lengths; actions
        sizeof(State), sizeof(SavedPositions), 4, 4,     // the games after the step
        RECORD_SIZE, 4, 4, 1, 1, 4 * NUM_PARTS, RECORD_SIZE, 4, 4, 1, 4, 4, 4, 1};  // `Results`

    static const int32_t* actions(Arrays at) { return static_cast<int32_t*>(at[GAMES]); }

    static Games games(Arrays at) {
        Arrays to = at + GAMES + 1;
        return {static_cast<State*>(to[0]), static_cast<SavedPositions*>(to[1]),
                static_cast<int32_t*>(to[2]), static_cast<int32_t*>(to[3]), nullptr};
    }

    static Results results(Arrays at) {
        Arrays to = at + 2 * GAMES + 1;
        auto flags = [to](int i) { return static_cast<bool*>(to[i]); };
        auto floats = [to](int i) { return static_cast<float*>(to[i]); };
        auto ints = [to](int i) { return static_cast<int32_t*>(to[i]); };
        auto records = [to](int i) { return static_cast<uint8_t*>(to[i]); };
        return {records(0), static_cast<uint32_t*>(to[1]), floats(2), flags(3), flags(4), floats(5),
                records(6), floats(7), ints(8), flags(9), ints(10), ints(11), ints(12), flags(13)};
    }

    // Copies the rows of some games whose results XLA did not let begin in place.
    static void begin(Arrays at, size_t first, size_t count) {
        begin<State>(at, 0, first, count);
        begin<SavedPositions>(at, 1, first, count);
        begin<int32_t>(at, 2, first, count);
        begin<int32_t>(at, 3, first, count);
    }

    template <class Row>
    static void begin(Arrays at, int array, size_t first, size_t count) {
        Row &was = row_of<Row>(at[array], first), &is = row_of<Row>(at[GAMES + 1 + array], first);
        if (&was != &is) std::memcpy(static_cast<void*>(&is), &was, count * sizeof(Row));
    }
};

struct ImagineCall {
    static constexpr size_t BYTES[] = {RECORD_SIZE, sizeof(MemoryRow), 4, 4, 4,
                                       sizeof(State), sizeof(SavedPositions), 4};

    static const char* play(Arrays at, size_t game) {
        State& state = row_of<State>(at[5], game);
        std::memset(static_cast<SavedPositions*>(at[6]) + game, 0, sizeof(SavedPositions));
        Dice dice{row_of<uint32_t>(at[3], game), row_of<uint32_t>(at[4], game), 0};
        const char* part = imagine(row_of<RecordRow>(at[0], game).bytes,
                                   row_of<MemoryRow>(at[1], game).bytes, row_of<int32_t>(at[2], game),
                                   dice, state, row_of<SavedPositions>(at[6], game));
        row_of<uint32_t>(at[7], game) = part ? 0 : valid_actions(state);
        return part;
    }
};

struct TacticalCall {
    static constexpr size_t BYTES[] = {RECORD_SIZE, TACTICAL_SIZE};

    static const char* play(Arrays at, size_t game) {
        const uint8_t* record = row_of<RecordRow>(at[0], game).bytes;
        Tactical& to = row_of<Tactical>(at[1], game);
        const char* part = record_fault(record);
        if (part) to = {};
        else tactical_numbers(record, to);
        return part;
    }
};

// Games as words of the JAX engine.
struct StateWordsCall {
    static constexpr size_t BYTES[] = {sizeof(State), sizeof(StateRow)};

    static const char* play(Arrays at, size_t game) {
        State copy = row_of<State>(at[0], game);
        if (const char* part = fault(copy)) return part;
        ToWords to{row_of<StateRow>(at[1], game).words};
        exchange(to, copy);
        return nullptr;
    }
};

// Saved positions as rows of the JAX engine; those that are not in use and not legal as zeros.
struct SavedWordsCall {
    static constexpr size_t BYTES[] = {sizeof(SavedPositions), sizeof(State), sizeof(SavedRow)};

    static const char* play(Arrays at, size_t game) {
        const SavedPositions& saved = row_of<SavedPositions>(at[0], game);
        if (const char* part = fault(row_of<State>(at[1], game), saved)) return part;
        for (int index = 0; index < MAX_SAVED_STATES; index++) {
            Position copy = saved.positions[index];
            if (fault(copy)) copy = {};
            ToWords to{row_of<SavedRow>(at[2], game).words + index * POSITION_WORDS};
            exchange(to, copy);
        }
        return nullptr;
    }
};

// Games from words of the JAX engine.
struct StatesCall {
    static constexpr size_t BYTES[] = {sizeof(StateRow), sizeof(State)};

    static const char* play(Arrays at, size_t game) {
        return take_words(row_of<StateRow>(at[0], game).words, row_of<State>(at[1], game));
    }
};

// Saved positions of games from rows of the JAX engine; those that are not in use and not legal
// become empty.
struct SavedCall {
    static constexpr size_t BYTES[] = {sizeof(SavedRow), sizeof(State), sizeof(SavedPositions)};

    static const char* play(Arrays at, size_t game) {
        return take_rows(row_of<SavedRow>(at[0], game).words, row_of<State>(at[1], game),
                         row_of<SavedPositions>(at[2], game));
    }
};

}  // namespace hackmatrix
