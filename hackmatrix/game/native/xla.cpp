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
    for_each_game(observation->dimensions()[0], threads, [&](size_t i) {
        observe(state[i], observation->typed_data() + i * RECORD_SIZE);
    });
    return ffi::Error::Success();
}

ffi::Error step_of(Bytes states, Bytes saved, Ints returns, Ints lengths, Ints actions,
                   Made new_states, Made new_saved, MadeInts new_returns, MadeInts new_lengths,
                   ffi::RemainingRets results, int32_t max_episode_steps, bool auto_reset,
                   bool progress, int32_t threads) {
    Games games{continued<State>(states, new_states), continued<SavedPositions>(saved, new_saved),
                continued<int32_t>(returns, new_returns),
                continued<int32_t>(lengths, new_lengths), nullptr};
    void* at[14];
    for (size_t i = 0; i < std::size(at); i++)
        at[i] = (*results.get<ffi::AnyBuffer>(i).value()).untyped_data();
    Settings settings{max_episode_steps, auto_reset, progress};
    Results to = results_at(at);
    step_games(games, actions.typed_data(), actions.element_count(), threads, settings, to);
    return ffi::Error::Success();
}

ffi::Error imagine_games(Bytes seen, Bytes remembered, Ints count, Words streams, Words episodes,
                         Made states, Made saved, MadeWords mask, int32_t threads) {
    State* state = structs<State>(*states);
    SavedPositions* positions = structs<SavedPositions>(*saved);
    std::memset(saved->typed_data(), 0, saved->size_bytes());
    for_each_game(streams.element_count(), threads, [&](size_t i) {
        imagine(seen.typed_data() + i * RECORD_SIZE,
                remembered.typed_data() + i * MAX_SAVED_STATES * RECORD_SIZE, count.typed_data()[i],
                {streams.typed_data()[i], episodes.typed_data()[i], 0}, state[i], positions[i]);
        mask->typed_data()[i] = valid_actions(state[i]);
    });
    return ffi::Error::Success();
}

ffi::Error tactical_games(Bytes records, ffi::ResultBuffer<ffi::S8> numbers, int32_t threads) {
    auto* to = reinterpret_cast<Tactical*>(numbers->typed_data());
    for_each_game(numbers->dimensions()[0], threads, [&](size_t i) {
        to[i] = tactical_numbers(records.typed_data() + i * RECORD_SIZE);
    });
    return ffi::Error::Success();
}

// States or positions, in a buffer of their bytes, as words of the JAX engine.
template <class Struct>
ffi::Error to_words(Bytes structs_, MadeWords words, int32_t threads) {
    size_t count = structs_.size_bytes() / sizeof(Struct), size = words->element_count() / count;
    const Struct* from = structs<Struct>(structs_);
    for_each_game(count, threads, [&](size_t i) {
        Struct copy = from[i];
        ToWords to{words->typed_data() + i * size};
        exchange(to, copy);
    });
    return ffi::Error::Success();
}

template <class Struct>
ffi::Error from_words(Words words, Made structs_, int32_t threads) {
    size_t count = structs_->size_bytes() / sizeof(Struct), size = words.element_count() / count;
    Struct* to = structs<Struct>(*structs_);
    for_each_game(count, threads, [&](size_t i) {
        FromWords from{words.typed_data() + i * size};
        to[i] = {};
        exchange(from, to[i]);
    });
    return ffi::Error::Success();
}

ffi::Error masks_of(Bytes states, MadeWords mask, int32_t threads) {
    const State* state = structs<State>(states);
    for_each_game(mask->element_count(), threads,
                  [&](size_t i) { mask->typed_data()[i] = valid_actions(state[i]); });
    return ffi::Error::Success();
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

ON_WORDS(on_masks, masks_of, Bytes, Words);
ON_WORDS(on_state_words, to_words<State>, Bytes, Words);
ON_WORDS(on_saved_words, to_words<Position>, Bytes, Words);
ON_WORDS(on_states, from_words<State>, Words, Bytes);
ON_WORDS(on_saved, from_words<Position>, Words, Bytes);

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
