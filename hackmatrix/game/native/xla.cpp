// The face for XLA on CPUs: batches of games inside compiled programs of JAX.
#include "xla.hpp"

#include "batch.hpp"
#include "calls.hpp"
#include "row_calls.hpp"

namespace ffi = xla::ffi;
using namespace hackmatrix;

namespace {

template <class Call>
ffi::Error play(ffi::RemainingArgs arguments, ffi::RemainingRets results, int32_t threads,
                const char* whole) {
    CallArrays<Call> arrays;
    if (!arrays.take(arguments, results)) return other_shapes();
    Fault illegal{};
    for_each_game(arrays.games, threads, [&](size_t game) {
        if (const char* part = Call::play(arrays.at, game)) illegal = part;
    });
    return illegal ? ffi::Error::InvalidArgument(text_of(illegal, whole)) : ffi::Error::Success();
}

ffi::Error step(ffi::RemainingArgs arguments, ffi::RemainingRets results, int32_t threads,
                int32_t max_episode_steps, bool auto_reset, bool progress) {
    CallArrays<StepCall> arrays;
    if (!arrays.take(arguments, results)) return other_shapes();
    StepCall::begin(arrays.at, 0, arrays.games);
    Settings settings{max_episode_steps, auto_reset, progress};
    step_games(StepCall::games(arrays.at), StepCall::actions(arrays.at), arrays.games, threads,
               settings, StepCall::results(arrays.at));
    return ffi::Error::Success();
}

#define BINDING ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<int32_t>("threads")
#define HANDLER(name, Call, whole)                                                            \
    XLA_FFI_DEFINE_HANDLER(                                                                   \
        on_##name,                                                                            \
        [](ffi::RemainingArgs arguments, ffi::RemainingRets results, int32_t threads) {       \
            return play<Call>(arguments, results, threads, whole);                            \
        },                                                                                    \
        BINDING)

HANDLER(reset, ResetCall, STATE);
HANDLER(observe, ObserveCall, STATE);
HANDLER(masks, MasksCall, STATE);
HANDLER(imagine, ImagineCall, OBSERVATION);
HANDLER(tactical, TacticalCall, OBSERVATION);
HANDLER(state_words, StateWordsCall, STATE);
HANDLER(saved_words, SavedWordsCall, STATE);
HANDLER(states, StatesCall, STATE);
HANDLER(saved, SavedCall, STATE);
XLA_FFI_DEFINE_HANDLER(on_step, step,
                       BINDING.Attr<int32_t>("max_episode_steps")
                           .Attr<bool>("auto_reset")
                           .Attr<bool>("progress"));
XLA_FFI_DEFINE_HANDLER(on_row_sums, row_sums, BINDING);
XLA_FFI_DEFINE_HANDLER(on_row_gradients, row_gradients, BINDING);

}  // namespace

Handlers xla_handlers() {
#define NAMED(name) {#name, reinterpret_cast<void*>(on_##name)}
    return {NAMED(reset),       NAMED(observe),     NAMED(masks),  NAMED(imagine), NAMED(tactical),
            NAMED(state_words), NAMED(saved_words), NAMED(states), NAMED(saved),   NAMED(step),
            NAMED(row_sums),    NAMED(row_gradients)};
}
