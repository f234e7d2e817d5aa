// Section 10: a whole game, from the start to its end.
#pragma once
#include "enemy_turn.hpp"
#include "reward.hpp"
#include "stage.hpp"

namespace hackmatrix {

// Makes a state the one before the first action.
inline void new_game(State& state, uint32_t stream, uint32_t episode) {
    state = {};
    state.dice = {stream, episode, 0};
    auto& bonus = START_BONUSES[state.dice.choose(START_BONUS, std::size(START_BONUSES))];
    int corner = CORNERS[state.dice.choose(START_CORNER, std::size(CORNERS))];
    state.player.cell = corner;
    state.player.hp = PLAYER_HP;
    state.player.credits = saturate(bonus[0]);
    state.player.energy = saturate(bonus[1]);
    state.player.siphons = saturate(bonus[2]);
    state.player.attack = 1;
    state.stage = 1;
    state.interval = FIRST_INTERVAL;
    begin_stage(state);
}

// Applies the player's action.
inline Effect act(State& state, const SavedPositions& saved, int action) {
    if (action < SIPHON) return go(state, action);
    if (action == SIPHON) {
        siphon(state);
        return {};
    }
    int program = action - FIRST_PROGRAM, kills = run(state, saved, program);
    return {kills, false, program == WARP && state.player.cell == state.exit};
}

// Whether an enemy turn follows an action: always, except for programs other than WAIT.
inline bool ends_turn(int action) { return action <= SIPHON || action == FIRST_PROGRAM + WAIT; }

// Heals the player, then begins the next stage at the player's cell or ends the game as won.
inline void complete_stage(State& state) {
    state.player.hp = std::min(state.player.hp + 1, PLAYER_HP);
    if (state.stage == LAST_STAGE) {
        state.over = WON;
        return;
    }
    state.stage++;
    state.interval = STAGE_INTERVAL - state.stage;
    begin_stage(state);
}

// Takes an action; an invalid one ends the game, and after the end nothing changes.
//
// `parts` gets the 15 reward parts, all 0 for an invalid action; returns whether a stage was
// completed.
inline bool step(State& state, SavedPositions& saved, int action, int32_t* parts) {
    std::fill(parts, parts + NUM_PARTS, 0);
    if (state.over != RUNNING) return false;
    if (action < 0 || action >= NUM_ACTIONS || !is_valid(state, action)) {
        state.over = INVALID_ACTION;
        return false;
    }
    state.dice.clock++;
    Before before = measure(state, action);
    Effect effect = act(state, saved, action);
    if (effect.completed) {
        complete_stage(state);
    } else if (ends_turn(action)) {
        enemy_turn(state, saved);
    }
    if (state.player.hp == 0) state.over = DIED;
    reward_parts(before, state, action, effect, parts);
    return effect.completed;
}

}  // namespace hackmatrix
