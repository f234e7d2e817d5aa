// The face for XLA: batches of games inside compiled programs of JAX, on CPUs.
#include "xla.hpp"

#include "batch.hpp"
#include "imagined.hpp"
#include "jax_state.hpp"
#include "tactical.hpp"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using namespace hackmatrix;

namespace {

using Bytes = ffi::Buffer<ffi::U8>;
using Made = ffi::ResultBuffer<ffi::U8>;
using Words = ffi::Buffer<ffi::U32>;
using MadeWords = ffi::ResultBuffer<ffi::U32>;
using Ints = ffi::Buffer<ffi::S32>;
using MadeInts = ffi::ResultBuffer<ffi::S32>;

template <class Struct, class Buffer>
Struct* structs(Buffer& buffer) {
    return reinterpret_cast<Struct*>(buffer.typed_data());
}

// A result, which XLA lets begin as a copy of an argument or in its place.
template <class Struct, class From, class To>
Struct* continued(From& from, To& to) {
    if (to->typed_data() != from.typed_data())
        std::memcpy(to->typed_data(), from.typed_data(), from.size_bytes());
    return structs<Struct>(*to);
}

// Whether a buffer has so many bytes for each of some games.
template <class Buffer>
bool holds(Buffer&& buffer, size_t games, size_t bytes) { return buffer.size_bytes() == games * bytes; }

// An error unless all buffers hold the same games.
#define EXPECT(condition) \
    if (!(condition)) return ffi::Error::InvalidArgument("arrays of other shapes or types")

ffi::Error ended(const Fault& fault, const char* whole) {
    return fault ? ffi::Error::InvalidArgument(text_of(fault, whole)) : ffi::Error::Success();
}

// The bytes of each result for a game, in the order of `Results`.
constexpr size_t RESULT_BYTES[] = {RECORD_SIZE, 4, 4, 1, 1, 4 * NUM_PARTS, RECORD_SIZE,
                                   4, 4, 1, 4, 4, 4, 1};

// The results in as many arrays, in this order.
Results results_at(void* const* at) {
    auto next = [&at] { return *at++; };
    auto flags = [&next] { return static_cast<bool*>(next()); };
    auto floats = [&next] { return static_cast<float*>(next()); };
    auto ints = [&next] { return static_cast<int32_t*>(next()); };
    auto bytes = [&next] { return static_cast<uint8_t*>(next()); };
    auto words = [&next] { return static_cast<uint32_t*>(next()); };
    return {bytes(), words(), floats(), flags(), flags(), floats(), bytes(),
            floats(), ints(), flags(), ints(), ints(), ints(), flags()};
}

ffi::Error reset_games(Words streams, Words episodes, Made states, Made saved, MadeWords mask,
                       int32_t threads) {
    size_t games = streams.element_count();
    EXPECT(holds(episodes, games, sizeof(uint32_t)) && holds(*states, games, sizeof(State)) &&
           holds(*saved, games, sizeof(SavedPositions)) && holds(*mask, games, sizeof(uint32_t)));
    State* state = structs<State>(*states);
    std::memset(saved->typed_data(), 0, saved->size_bytes());
    for_each_game(games, threads, [&](size_t i) {
        state[i] = new_game(streams.typed_data()[i], episodes.typed_data()[i]);
        mask->typed_data()[i] = valid_actions(state[i]);
    });
    return ffi::Error::Success();
}

ffi::Error observe_games(Bytes states, Made observation, int32_t threads) {
    const State* state = structs<State>(states);
    size_t games = states.size_bytes() / sizeof(State);
    EXPECT(holds(states, games, sizeof(State)) && holds(*observation, games, RECORD_SIZE));
    Fault illegal{};
    for_each_legal(games, threads, illegal, [&](size_t i) { return fault(state[i]); }, [&](size_t i) {
        observe(state[i], observation->typed_data() + i * RECORD_SIZE);
    });
    return ended(illegal, STATE);
}

ffi::Error step_of(Bytes states, Bytes saved, Ints returns, Ints lengths, Ints actions,
                   Made new_states, Made new_saved, MadeInts new_returns, MadeInts new_lengths,
                   ffi::RemainingRets results, int32_t max_episode_steps, bool auto_reset,
                   bool progress, int32_t threads) {
    size_t count = actions.element_count();
    EXPECT(holds(states, count, sizeof(State)) && holds(*new_states, count, sizeof(State)) &&
           holds(saved, count, sizeof(SavedPositions)) &&
           holds(*new_saved, count, sizeof(SavedPositions)) &&
           holds(returns, count, sizeof(int32_t)) && holds(*new_returns, count, sizeof(int32_t)) &&
           holds(lengths, count, sizeof(int32_t)) && holds(*new_lengths, count, sizeof(int32_t)) &&
           results.size() == std::size(RESULT_BYTES));
    Games games{continued<State>(states, new_states), continued<SavedPositions>(saved, new_saved),
                continued<int32_t>(returns, new_returns),
                continued<int32_t>(lengths, new_lengths), nullptr};
    void* at[std::size(RESULT_BYTES)];
    for (size_t i = 0; i < std::size(at); i++) {
        ffi::Result<ffi::AnyBuffer> result = results.get<ffi::AnyBuffer>(i).value();
        EXPECT(holds(*result, count, RESULT_BYTES[i]));
        at[i] = result->untyped_data();
    }
    Settings settings{max_episode_steps, auto_reset, progress};
    Results to = results_at(at);
    step_games(games, actions.typed_data(), count, threads, settings, to);
    return ffi::Error::Success();
}

ffi::Error imagine_games(Bytes seen, Bytes remembered, Ints count, Words streams, Words episodes,
                         Made states, Made saved, MadeWords mask, int32_t threads) {
    size_t games = streams.element_count();
    EXPECT(holds(seen, games, RECORD_SIZE) && holds(remembered, games, 4 * RECORD_SIZE) &&
           holds(count, games, sizeof(int32_t)) && holds(episodes, games, sizeof(uint32_t)) &&
           holds(*states, games, sizeof(State)) && holds(*saved, games, sizeof(SavedPositions)) &&
           holds(*mask, games, sizeof(uint32_t)));
    State* state = structs<State>(*states);
    SavedPositions* positions = structs<SavedPositions>(*saved);
    std::memset(saved->typed_data(), 0, saved->size_bytes());
    Fault illegal{};
    for_each_game(games, threads, [&](size_t i) {
        const uint8_t* old = remembered.typed_data() + i * MAX_SAVED_STATES * RECORD_SIZE;
        Dice dice{streams.typed_data()[i], episodes.typed_data()[i], 0};
        const char* part = imagine(seen.typed_data() + i * RECORD_SIZE, old, count.typed_data()[i],
                                   dice, state[i], positions[i]);
        if (part) illegal = part;
        mask->typed_data()[i] = part ? 0 : valid_actions(state[i]);
    });
    return ended(illegal, OBSERVATION);
}

ffi::Error tactical_games(Bytes records, ffi::ResultBuffer<ffi::S8> numbers, int32_t threads) {
    size_t games = records.size_bytes() / RECORD_SIZE;
    EXPECT(holds(records, games, RECORD_SIZE) && holds(*numbers, games, TACTICAL_SIZE));
    auto record = [&](size_t i) { return records.typed_data() + i * RECORD_SIZE; };
    auto* to = reinterpret_cast<Tactical*>(numbers->typed_data());
    Fault illegal{};
    for_each_legal(games, threads, illegal, [&](size_t i) { return record_fault(record(i)); },
                   [&](size_t i) { to[i] = tactical_numbers(record(i)); });
    return ended(illegal, OBSERVATION);
}

// Games as words of the JAX engine.
ffi::Error state_words(Bytes states, MadeWords words, int32_t threads) {
    size_t games = states.size_bytes() / sizeof(State), size = STATE_WORDS;
    EXPECT(holds(states, games, sizeof(State)) && holds(*words, games, size * sizeof(uint32_t)));
    const State* state = structs<State>(states);
    Fault illegal{};
    for_each_legal(games, threads, illegal, [&](size_t i) { return fault(state[i]); }, [&](size_t i) {
        State copy = state[i];
        ToWords to{words->typed_data() + i * size};
        exchange(to, copy);
    });
    return ended(illegal, STATE);
}

// Saved positions as rows of the JAX engine; those that are not in use and not legal as zeros.
ffi::Error saved_words(Bytes saved, Bytes states, MadeWords rows, int32_t threads) {
    size_t games = states.size_bytes() / sizeof(State), size = POSITION_WORDS;
    EXPECT(holds(states, games, sizeof(State)) && holds(saved, games, sizeof(SavedPositions)) &&
           holds(*rows, games * MAX_SAVED_STATES, size * sizeof(uint32_t)));
    const State* state = structs<State>(states);
    const SavedPositions* positions = structs<SavedPositions>(saved);
    Fault illegal{};
    auto check = [&](size_t i) { return fault(state[i], positions[i]); };
    for_each_legal(games, threads, illegal, check, [&](size_t i) {
        for (int place = 0; place < MAX_SAVED_STATES; place++) {
            Position copy = positions[i].positions[place];
            if (fault(copy)) copy = {};
            ToWords to{rows->typed_data() + (i * MAX_SAVED_STATES + place) * size};
            exchange(to, copy);
        }
    });
    return ended(illegal, STATE);
}

// Games from words of the JAX engine.
ffi::Error states_of(Words words, Made states, int32_t threads) {
    size_t games = states->size_bytes() / sizeof(State), size = STATE_WORDS;
    EXPECT(holds(*states, games, sizeof(State)) && holds(words, games, size * sizeof(uint32_t)));
    State* state = structs<State>(*states);
    Fault illegal{};
    for_each_game(games, threads, [&](size_t i) {
        if (const char* part = take_words(words.typed_data() + i * size, state[i])) illegal = part;
    });
    return ended(illegal, STATE);
}

// Saved positions of games from rows of the JAX engine; those that are not in use and not legal
// become empty.
ffi::Error saved_of(Words rows, Bytes states, Made saved, int32_t threads) {
    size_t games = states.size_bytes() / sizeof(State), size = POSITION_WORDS;
    EXPECT(holds(states, games, sizeof(State)) && holds(*saved, games, sizeof(SavedPositions)) &&
           holds(rows, games * MAX_SAVED_STATES, size * sizeof(uint32_t)));
    const State* state = structs<State>(states);
    SavedPositions* positions = structs<SavedPositions>(*saved);
    Fault illegal{};
    for_each_game(games, threads, [&](size_t i) {
        const uint32_t* from = rows.typed_data() + i * MAX_SAVED_STATES * size;
        if (const char* part = take_rows(from, state[i], positions[i])) illegal = part;
    });
    return ended(illegal, STATE);
}

ffi::Error masks_of(Bytes states, MadeWords mask, int32_t threads) {
    size_t games = mask->element_count();
    EXPECT(holds(states, games, sizeof(State)));
    const State* state = structs<State>(states);
    Fault illegal{};
    for_each_legal(games, threads, illegal, [&](size_t i) { return fault(state[i]); },
                   [&](size_t i) { mask->typed_data()[i] = valid_actions(state[i]); });
    return ended(illegal, STATE);
}

XLA_FFI_DEFINE_HANDLER(on_reset, reset_games,
                       ffi::Ffi::Bind()
                           .Arg<Words>()
                           .Arg<Words>()
                           .Ret<Bytes>()
                           .Ret<Bytes>()
                           .Ret<Words>()
                           .Attr<int32_t>("threads"));
XLA_FFI_DEFINE_HANDLER(on_observe, observe_games,
                       ffi::Ffi::Bind()
                           .Arg<Bytes>()
                           .Ret<Bytes>()
                           .Attr<int32_t>("threads"));
XLA_FFI_DEFINE_HANDLER(on_imagine, imagine_games,
                       ffi::Ffi::Bind()
                           .Arg<Bytes>()
                           .Arg<Bytes>()
                           .Arg<Ints>()
                           .Arg<Words>()
                           .Arg<Words>()
                           .Ret<Bytes>()
                           .Ret<Bytes>()
                           .Ret<Words>()
                           .Attr<int32_t>("threads"));
XLA_FFI_DEFINE_HANDLER(on_tactical, tactical_games,
                       ffi::Ffi::Bind()
                           .Arg<Bytes>()
                           .Ret<ffi::Buffer<ffi::S8>>()
                           .Attr<int32_t>("threads"));
XLA_FFI_DEFINE_HANDLER(on_step, step_of,
                       ffi::Ffi::Bind()
                           .Arg<Bytes>()
                           .Arg<Bytes>()
                           .Arg<Ints>()
                           .Arg<Ints>()
                           .Arg<Ints>()
                           .Ret<Bytes>()
                           .Ret<Bytes>()
                           .Ret<Ints>()
                           .Ret<Ints>()
                           .RemainingRets()
                           .Attr<int32_t>("max_episode_steps")
                           .Attr<bool>("auto_reset")
                           .Attr<bool>("progress")
                           .Attr<int32_t>("threads"));

#define ON_WORDS(name, function, From, To) \
    XLA_FFI_DEFINE_HANDLER(name, function, \
                           ffi::Ffi::Bind().Arg<From>().Ret<To>().Attr<int32_t>("threads"))
#define ON_ROWS(name, function, From, To) \
    XLA_FFI_DEFINE_HANDLER( \
        name, function, \
        ffi::Ffi::Bind().Arg<From>().Arg<Bytes>().Ret<To>().Attr<int32_t>("threads"))

ON_WORDS(on_masks, masks_of, Bytes, Words);
ON_WORDS(on_state_words, state_words, Bytes, Words);
ON_WORDS(on_states, states_of, Words, Bytes);
ON_ROWS(on_saved_words, saved_words, Bytes, Words);
ON_ROWS(on_saved, saved_of, Words, Bytes);

}  // namespace

std::vector<std::pair<const char*, void*>> xla_handlers() {
    return {{"reset", reinterpret_cast<void*>(on_reset)},
            {"observe", reinterpret_cast<void*>(on_observe)},
            {"imagine", reinterpret_cast<void*>(on_imagine)},
            {"tactical", reinterpret_cast<void*>(on_tactical)},
            {"masks", reinterpret_cast<void*>(on_masks)},
            {"state_words", reinterpret_cast<void*>(on_state_words)},
            {"saved_words", reinterpret_cast<void*>(on_saved_words)},
            {"states", reinterpret_cast<void*>(on_states)},
            {"saved", reinterpret_cast<void*>(on_saved)},
            {"step", reinterpret_cast<void*>(on_step)}};
}
