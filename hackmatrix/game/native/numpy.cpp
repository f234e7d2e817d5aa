// The face for Python: batches of games in NumPy arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "batch.hpp"
#include "features.hpp"
#include "scripted.hpp"
#include "tactical.hpp"
#ifdef WITH_XLA
#include "xla.hpp"
#endif

namespace nb = nanobind;
using namespace hackmatrix;

namespace {

// The data of a NumPy array of this type, with a row of WIDTH for each game (0: just a number).
template <class T, int WIDTH = 0>
T* rows(nb::handle array, size_t games) {
    using Shape = std::conditional_t<WIDTH == 0, nb::shape<-1>, nb::shape<-1, WIDTH>>;
    nb::ndarray<T, Shape, nb::c_contig, nb::device::cpu> view;
    if (!nb::try_cast(array, view, false))
        throw nb::type_error("an array is of another type or shape, or not contiguous");
    if (view.shape(0) != games)
        throw nb::value_error("all arrays must have as many rows as there are games");
    return view.data();
}

// Structs in an array of their bytes, uint8[games, size].
template <class Struct>
Struct* structs(nb::handle array, size_t games) {
    uint8_t* bytes = rows<uint8_t, sizeof(Struct)>(array, games);
    if (reinterpret_cast<uintptr_t>(bytes) % alignof(Struct))
        throw nb::value_error("the states must be aligned to 8 bytes");
    return reinterpret_cast<Struct*>(bytes);
}

// Works on each game, and raises an error if a check names a part of one that is not legal.
template <class Check, class Work>
void for_each_checked(const char* whole, size_t games, int threads, Check check, Work work) {
    Fault fault{};
    {
        nb::gil_scoped_release released;
        for_each_legal(games, threads, fault, check, work);
    }
    if (fault) throw nb::value_error(text_of(fault, whole).c_str());
}

void reset_games(nb::object states, nb::object streams, nb::object episodes, int threads) {
    size_t games = nb::len(states);
    State* state = structs<State>(states, games);
    auto* stream = rows<const uint32_t>(streams, games);
    auto* episode = rows<const uint32_t>(episodes, games);
    nb::gil_scoped_release released;
    for_each_game(games, threads, [=](size_t i) { new_game(state[i], stream[i], episode[i]); });
}

void observe_games(nb::object states, nb::object observations, nb::object masks, int threads) {
    size_t games = nb::len(states);
    const State* state = structs<State>(states, games);
    uint8_t* observation = rows<uint8_t, RECORD_SIZE>(observations, games);
    uint32_t* mask = rows<uint32_t>(masks, games);
    auto check = [=](size_t i) { return fault(state[i]); };
    for_each_checked(STATE, games, threads, check, [=](size_t i) {
        observe(state[i], observation + i * RECORD_SIZE);
        mask[i] = valid_actions(state[i]);
    });
}

// Raises an error if a game is not legal, or a position that UNDO can restore.
void check_games(nb::object states, nb::object positions, int threads) {
    size_t games = nb::len(states);
    const State* state = structs<State>(states, games);
    const SavedPositions* saved = structs<SavedPositions>(positions, games);
    auto check = [=](size_t i) { return fault(state[i], saved[i]); };
    for_each_checked(STATE, games, threads, check, [](size_t) {});
}

// Works on each record: what a game's `observe` wrote, or bytes from outside.
template <class Work>
void for_each_record(nb::object records, int threads, Work work) {
    size_t games = nb::len(records);
    auto* record = rows<const uint8_t, RECORD_SIZE>(records, games);
    auto check = [=](size_t i) { return record_fault(record + i * RECORD_SIZE); };
    for_each_checked(OBSERVATION, games, threads, check,
                     [=](size_t i) { work(record + i * RECORD_SIZE, i); });
}

void tactical_games(nb::object records, nb::object integers, int threads) {
    auto* to = rows<int8_t, TACTICAL_SIZE>(integers, nb::len(records));
    for_each_record(records, threads, [=](const uint8_t* record, size_t i) {
        tactical_numbers(record, reinterpret_cast<Tactical*>(to)[i]);
    });
}

void features_of(nb::object records, nb::object values, bool full, int threads) {
    size_t games = nb::len(records), size = full ? FULL_SIZE : CLASSIC_SIZE;
    float* to = full ? rows<float, FULL_SIZE>(values, games) : rows<float, CLASSIC_SIZE>(values, games);
    for_each_record(records, threads, [=](const uint8_t* record, size_t i) {
        features(record, full, to + i * size);
    });
}

void scripted_actions(nb::object records, nb::object weights, uint32_t forbidden,
                      nb::object actions, int threads) {
    auto* w = reinterpret_cast<const scripted::Weights*>(
        rows<const double>(weights, scripted::NUM_WEIGHTS));
    int32_t* to = rows<int32_t>(actions, nb::len(records));
    for_each_record(records, threads, [=](const uint8_t* record, size_t i) {
        to[i] = scripted::choose(record, *w, forbidden);
    });
}

void step_of(nb::object states, nb::object saved, nb::object returns, nb::object lengths,
             nb::object held, nb::object actions, int max_episode_steps, bool auto_reset,
             bool progress, int threads, nb::args results) {
    if (results.size() != 14) throw nb::type_error("step needs 14 arrays for its results");
    size_t games = nb::len(states);
    Games played{structs<State>(states, games), structs<SavedPositions>(saved, games),
                 rows<int32_t>(returns, games), rows<int32_t>(lengths, games),
                 nb::len(held) ? rows<const bool>(held, games) : nullptr};
    auto* action = rows<const int32_t>(actions, games);
    Settings settings{max_episode_steps, auto_reset, progress};
    Results to{
        rows<uint8_t, RECORD_SIZE>(results[0], games),
        rows<uint32_t>(results[1], games),
        rows<float>(results[2], games),
        rows<bool>(results[3], games),
        rows<bool>(results[4], games),
        rows<float, NUM_PARTS>(results[5], games),
        rows<uint8_t, RECORD_SIZE>(results[6], games),
        rows<float>(results[7], games),
        rows<int32_t>(results[8], games),
        rows<bool>(results[9], games),
        rows<int32_t>(results[10], games),
        rows<int32_t>(results[11], games),
        rows<int32_t>(results[12], games),
        rows<bool>(results[13], games),
    };
    nb::gil_scoped_release released;
    step_games(played, action, games, threads, settings, to);
}

#ifdef WITH_XLA
nb::dict capsules(const Handlers& handlers) {
    nb::dict by_name;
    for (auto [name, handler] : handlers) by_name[name] = nb::capsule(handler);
    return by_name;
}
#endif

}  // namespace

NB_MODULE(_native, module) {
    module.attr("STATE_SIZE") = sizeof(State);
    module.attr("SAVED_SIZE") = sizeof(SavedPositions);
    module.attr("SOURCE_DIGEST") = SOURCE_DIGEST;
#ifdef WITH_XLA
    module.attr("XLA_HANDLERS") = capsules(xla_handlers());
    module.attr("CUDA_HANDLERS") = capsules(cuda_handlers());
    module.attr("CUDA_INITIALIZERS") = capsules(cuda_initializers());
    module.def("load_kernels", [](nb::bytes image) { return load_kernels(image.c_str()); });
#endif
    module.def("reset", reset_games);
    module.def("observe", observe_games);
    module.def("check", check_games);
    module.def("step", step_of);
    module.def("tactical", tactical_games);
    module.def("features", features_of);
    module.def("scripted", scripted_actions);
}
