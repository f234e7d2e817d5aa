// Section 11: the 15 parts of the reward, in integer units of 0.005.
#pragma once
#include "actions.hpp"
#include "siphoning.hpp"

namespace hackmatrix {

// Quantities of the state before the action that the reward depends on.
struct Before {
    int stage, hp, score, credits, energy;
    int distance;  // to the exit, 0 without a path
    int missed_resources;  // further credits and energy that a better cell to siphon would have given
};

inline Before measure(const State& state, int action) {
    const Player& player = state.player;
    return {state.stage,   player.hp,     player.score,
            player.credits, player.energy, exit_distance(state),
            action == SIPHON ? missed_resources(state) : 0};
}

// Whether an enemy next to the player came from siphoning.
inline bool is_siphon_killed(const State& state) {
    return std::any_of(state.enemies.begin(), state.enemies.end(), [&](const Enemy& enemy) {
        return enemy.from_siphon && has(NEIGHBOURS[state.player.cell], enemy.cell);
    });
}

// The parts of a valid action, in the order of `REWARD_PARTS`.
inline void reward_parts(const Before& before, const State& state, int action, Effect effect,
                         int32_t* parts) {
    const Player& player = state.player;
    bool died = player.hp == 0, won = state.over == WON, completed = effect.completed;
    int distance = completed ? 0 : exit_distance(state);
    int nearer = died ? 0 : std::max(0, before.distance - distance);
    int gained = player.credits - before.credits + player.energy - before.energy;
    int held = player.credits + player.energy;
    bool wasted = action == FIRST_PROGRAM + RESET && before.hp == PLAYER_HP - 1;
    *parts++ = STEP_PENALTY;
    *parts++ = STAGE_COMPLETION[before.stage - 1] * completed;
    *parts++ = SCORE_GAIN * (player.score - before.score);
    *parts++ = KILL * effect.kills;
    *parts++ = DATA_SIPHON_GAIN * effect.picked_up;
    *parts++ = DISTANCE * nearer;
    *parts++ = (VICTORY + VICTORY_SCORE * player.score) * won;
    *parts++ = DEATH[before.stage - 1] * died;
    *parts++ = RESOURCE_GAIN * gained;
    *parts++ = RESOURCE_HOLDING * held * completed;
    *parts++ = DAMAGE * std::max(0, before.hp - player.hp);
    *parts++ = HP_RECOVERY * std::max(0, player.hp - before.hp);
    *parts++ = SIPHON_QUALITY * before.missed_resources;
    *parts++ = PROGRAM_WASTE * wasted;
    *parts++ = SIPHON_DEATH * (died && is_siphon_killed(state));
}

}  // namespace hackmatrix
