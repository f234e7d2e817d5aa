// The face for XLA: batches of games inside compiled programs of JAX, on CPUs.
#include "xla.hpp"

#include "batch.hpp"
#include "tactical.hpp"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;
using namespace hackmatrix;

namespace {

using Bytes = ffi::Buffer<ffi::U8>;
using Made = ffi::ResultBuffer<ffi::U8>;

template <class Struct, class Buffer>
Struct* structs(Buffer& buffer) {
    return reinterpret_cast<Struct*>(buffer.typed_data());
}

// A result, which XLA lets begin as a copy of an argument or in its place.
template <class Struct>
Struct* continued(Bytes& from, Made& to) {
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

ffi::Error reset_games(ffi::Buffer<ffi::U32> streams, ffi::Buffer<ffi::U32> episodes, Made states,
                       Made saved, int32_t threads) {
    size_t games = streams.element_count();
    EnvState* env = structs<EnvState>(*states);
    std::memset(saved->typed_data(), 0, saved->size_bytes());
    for_each_game(games, threads, [&](size_t i) {
        begin_game(env[i], streams.typed_data()[i], episodes.typed_data()[i]);
    });
    return ffi::Error::Success();
}

ffi::Error observe_games(Bytes states, Made observation, ffi::ResultBuffer<ffi::U32> mask,
                         int32_t threads) {
    const EnvState* env = structs<EnvState>(states);
    for_each_game(mask->element_count(), threads, [&](size_t i) {
        observe(env[i].game, observation->typed_data() + i * RECORD_SIZE);
        mask->typed_data()[i] = valid_actions(env[i].game);
    });
    return ffi::Error::Success();
}

ffi::Error step_of(Bytes states, Bytes saved, ffi::Buffer<ffi::S32> actions, Made new_states,
                      Made new_saved, ffi::RemainingRets results, int32_t max_episode_steps,
                      bool auto_reset, bool progress, int32_t threads) {
    EnvState* env = continued<EnvState>(states, new_states);
    SavedPositions* positions = continued<SavedPositions>(saved, new_saved);
    void* at[14];
    for (size_t i = 0; i < std::size(at); i++)
        at[i] = (*results.get<ffi::AnyBuffer>(i).value()).untyped_data();
    Settings settings{max_episode_steps, auto_reset, progress};
    Results to = results_at(at);
    step_games(env, positions, actions.typed_data(), actions.element_count(), threads, settings,
               to);
    return ffi::Error::Success();
}

ffi::Error tactical_games(Bytes records, ffi::ResultBuffer<ffi::S8> numbers, int32_t threads) {
    auto* to = reinterpret_cast<Tactical*>(numbers->typed_data());
    for_each_game(numbers->dimensions()[0], threads, [&](size_t i) {
        to[i] = tactical_numbers(records.typed_data() + i * RECORD_SIZE);
    });
    return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(on_reset, reset_games,
                       ffi::Ffi::Bind()
                           .Arg<ffi::Buffer<ffi::U32>>()
                           .Arg<ffi::Buffer<ffi::U32>>()
                           .Ret<Bytes>()
                           .Ret<Bytes>()
                           .Attr<int32_t>("threads"));
XLA_FFI_DEFINE_HANDLER(on_observe, observe_games,
                       ffi::Ffi::Bind()
                           .Arg<Bytes>()
                           .Ret<Bytes>()
                           .Ret<ffi::Buffer<ffi::U32>>()
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
                           .Arg<ffi::Buffer<ffi::S32>>()
                           .Ret<Bytes>()
                           .Ret<Bytes>()
                           .RemainingRets()
                           .Attr<int32_t>("max_episode_steps")
                           .Attr<bool>("auto_reset")
                           .Attr<bool>("progress")
                           .Attr<int32_t>("threads"));

}  // namespace

std::vector<std::pair<const char*, void*>> xla_handlers() {
    return {{"reset", reinterpret_cast<void*>(on_reset)},
            {"observe", reinterpret_cast<void*>(on_observe)},
            {"tactical", reinterpret_cast<void*>(on_tactical)},
            {"step", reinterpret_cast<void*>(on_step)}};
}
