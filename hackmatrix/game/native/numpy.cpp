// The face for Python: batches of games in NumPy arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "batch.hpp"

namespace nb = nanobind;
using namespace hackmatrix;

namespace {

template <class T, class... Axes>
using Array = nb::ndarray<T, nb::shape<-1, Axes::value...>, nb::c_contig, nb::device::cpu>;

template <int SIZE_>
struct Axis {
    static constexpr int value = SIZE_;
};

using EnvStates = Array<uint8_t, Axis<sizeof(EnvState)>>;
using Saved = Array<uint8_t, Axis<sizeof(SavedPositions)>>;
using Records = Array<uint8_t, Axis<RECORD_SIZE>>;
template <class T>
using Each = Array<T>;

// The first of some structs that an array of bytes holds.
template <class T>
T* structs(void* bytes) {
    if (reinterpret_cast<uintptr_t>(bytes) % alignof(T))
        throw std::invalid_argument("the states must be aligned to 8 bytes");
    return static_cast<T*>(bytes);
}

template <class... Arrays>
void check_games(size_t games, const Arrays&... arrays) {
    if (((arrays.shape(0) != games) || ...))
        throw std::invalid_argument("all arrays must have as many rows as there are games");
}

void reset(EnvStates states, Each<const uint32_t> streams, Each<const uint32_t> episodes,
           int threads) {
    size_t games = states.shape(0);
    check_games(games, streams, episodes);
    EnvState* env = structs<EnvState>(states.data());
    nb::gil_scoped_release released;
    for_each_game(games, threads,
                  [&](size_t i) { begin_game(env[i], streams.data()[i], episodes.data()[i]); });
}

void observe_all(EnvStates states, Records observation, Each<uint32_t> mask, int threads) {
    size_t games = states.shape(0);
    check_games(games, observation, mask);
    const EnvState* env = structs<EnvState>(states.data());
    nb::gil_scoped_release released;
    for_each_game(games, threads, [&](size_t i) {
        observe(env[i].game, observation.data() + i * RECORD_SIZE);
        mask.data()[i] = valid_actions(env[i].game);
    });
}

void step_all(EnvStates states, Saved saved, Each<const int32_t> actions, int max_episode_steps,
              bool auto_reset, bool progress, int threads, Records observation,
              Each<uint32_t> mask, Each<float> reward, Each<bool> terminated, Each<bool> truncated,
              Array<float, Axis<NUM_PARTS>> reward_parts, Records final_observation,
              Each<float> episode_return, Each<int32_t> episode_length, Each<bool> episode_done,
              Each<int32_t> stage, Each<int32_t> score, Each<int32_t> programs_owned,
              Each<bool> won) {
    size_t games = states.shape(0);
    check_games(games, saved, actions, observation, mask, reward, terminated, truncated,
                reward_parts, final_observation, episode_return, episode_length, episode_done,
                stage, score, programs_owned, won);
    EnvState* env = structs<EnvState>(states.data());
    SavedPositions* positions = structs<SavedPositions>(saved.data());
    Settings settings{max_episode_steps, auto_reset, progress};
    Results to{observation.data(),    mask.data(),           reward.data(),
               terminated.data(),     truncated.data(),      reward_parts.data(),
               final_observation.data(), episode_return.data(), episode_length.data(),
               episode_done.data(),   stage.data(),          score.data(),
               programs_owned.data(), won.data()};
    nb::gil_scoped_release released;
    for_each_game(games, threads, [&](size_t i) {
        step_game(env[i], positions[i], actions.data()[i], settings, to, i);
    });
}

}  // namespace

NB_MODULE(_native, module) {
    module.attr("STATE_SIZE") = sizeof(EnvState);
    module.attr("SAVED_SIZE") = sizeof(SavedPositions);
    module.def("reset", reset);
    module.def("observe", observe_all);
    module.def("step", step_all);
}
