// A step of a game, as the environment takes it (`environments/hackmatrix/env.py`).
#pragma once
#include <cstddef>
#include <numeric>

#include "game.hpp"
#include "observation.hpp"
#include "training_reward.hpp"

namespace hackmatrix {

// Games under way: arrays with a row for each.
struct Games {
    State* states;
    SavedPositions* saved;
    int32_t* episode_return;  // in units of 0.005
    int32_t* episode_length;  // actions taken
    const bool* held;         // games that take no action now and are only observed; may be null
};

struct Settings {
    int max_episode_steps;  // actions after which an episode is truncated
    bool auto_reset;        // whether the next game of the stream starts when one ends
    bool progress;          // whether the reward is `progress`
};

// Where the results of a step go: arrays with a row for each game, as `StepSpec` names them.
struct Results {
    uint8_t* observation;  // RECORD_SIZE each
    uint32_t* mask;        // valid actions, bit a for action a
    float* reward;
    bool *terminated, *truncated;
    float* reward_parts;         // NUM_PARTS each
    uint8_t* final_observation;  // RECORD_SIZE each, before a restart
    float* episode_return;
    int32_t* episode_length;
    bool* episode_done;
    int32_t *stage, *score, *programs_owned;
    bool* won;
};

// Observes one game; what a step does is 0.
inline void hold_game(const State& game, const Results& to, size_t i) {
    observe(game, to.observation + i * RECORD_SIZE);
    to.mask[i] = valid_actions(game);
    to.reward[i] = to.episode_return[i] = 0;
    to.terminated[i] = to.truncated[i] = to.episode_done[i] = to.won[i] = false;
    std::fill_n(to.reward_parts + i * NUM_PARTS, NUM_PARTS, 0.0f);
    std::fill_n(to.final_observation + i * RECORD_SIZE, RECORD_SIZE, 0);
    to.episode_length[i] = to.stage[i] = to.score[i] = to.programs_owned[i] = 0;
}

// Takes an action in one game and starts the next one where that is due.
inline void step_game(const Games& games, int action, const Settings& settings, const Results& to,
                      size_t i) {
    State& game = games.states[i];
    int32_t &episode_return = games.episode_return[i], &episode_length = games.episode_length[i];
    bool was_running = game.over == RUNNING;
    Player before = game.player;
    int32_t parts[NUM_PARTS];
    bool completed = step(game, games.saved[i], action, parts);
    int32_t gained = std::accumulate(parts, parts + NUM_PARTS, 0);
    uint8_t* observation = to.observation + i * RECORD_SIZE;
    uint8_t* final_observation = to.final_observation + i * RECORD_SIZE;
    observe(game, final_observation);
    std::transform(parts, parts + NUM_PARTS, to.reward_parts + i * NUM_PARTS,
                   [](int32_t part) { return static_cast<float>(part) * UNIT; });
    episode_return = static_cast<int32_t>(uint32_t(episode_return) + uint32_t(gained));
    episode_length = static_cast<int32_t>(uint32_t(episode_length) + was_running);
    bool terminated = game.over != RUNNING;
    bool truncated = !terminated && episode_length >= settings.max_episode_steps;
    to.reward[i] = settings.progress ? progress(before, game.player, completed,
                                                was_running && game.over == WON,
                                                was_running && game.over == DIED)
                                     : static_cast<float>(gained) * UNIT;
    to.terminated[i] = terminated;
    to.truncated[i] = truncated;
    to.episode_return[i] = static_cast<float>(episode_return) * UNIT;
    to.episode_length[i] = episode_length;
    to.episode_done[i] = terminated || truncated;
    to.stage[i] = game.stage;
    to.score[i] = game.player.score;
    to.programs_owned[i] = size(game.owned);
    to.won[i] = game.over == WON;
    if (settings.auto_reset && (terminated || truncated)) {
        new_game(game, game.dice.stream, game.dice.episode + 1);
        episode_return = episode_length = 0;
        observe(game, observation);
    } else {
        std::memcpy(observation, final_observation, RECORD_SIZE);
    }
    to.mask[i] = valid_actions(game);
}

}  // namespace hackmatrix
