// Hits, damage and kills by attacks (section 3) and programs (section 8).
#pragma once
#include "state.hpp"

namespace hackmatrix {

// Reduces hp. An enemy that survives is stunned; `remove_dead` removes the others.
inline void damage(Enemy& enemy, int amount) {
    enemy.hp = std::max(enemy.hp - amount, 0);
    enemy.stunned = true;
}

// Removes the enemies without hp; returns the kills that give a reward: not those of the schedule.
inline int remove_dead(State& state) {
    int kills = 0;
    state.enemies.remove_if([&](const Enemy& enemy) {
        bool dead = enemy.hp <= 0;
        kills += dead && !enemy.from_schedule;
        return dead;
    });
    return kills;
}

// Destroys the transmission on a cell if there is one; returns the rewarded kills.
inline int destroy_transmission(State& state, int cell) {
    int kills = 0;
    state.transmissions.remove_if([&](const Transmission& transmission) {
        kills += transmission.cell == cell && !transmission.from_schedule;
        return transmission.cell == cell;
    });
    return kills;
}

// Hits once what is on a cell, a transmission before an enemy; returns the rewarded kills.
inline int attack(State& state, int cell) {
    if (has(state.transmissions.cells(), cell)) return destroy_transmission(state, cell);
    damage(*state.enemies.on(cell), state.player.attack);
    return remove_dead(state);
}

// Removes all enemies on a cell; only the first in the list counts as a kill.
inline int destroy_all_on(State& state, int cell) {
    Enemy* first = state.enemies.on(cell);
    int kills = first && !first->from_schedule;
    state.enemies.remove_if([=](const Enemy& enemy) { return enemy.cell == cell; });
    return kills;
}

}  // namespace hackmatrix
