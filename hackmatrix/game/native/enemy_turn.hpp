// Section 4: the enemy turn.
#pragma once
#include "movement.hpp"
#include "spawning.hpp"
#include "undo.hpp"

namespace hackmatrix {

// Counts transmissions down; those that are due become enemies while there is room.
inline void land_transmissions(State& state) {
    state.transmissions.remove_if([&](Transmission& transmission) {
        if (transmission.turns > 1) {
            transmission.turns--;
            return false;
        }
        transmission.turns = 1;
        if (state.enemies.count == MAX_ENEMIES) return false;
        Enemy enemy{};
        enemy.type = transmission.type;
        enemy.cell = enemy.last = transmission.cell;
        enemy.hp = ENEMY_HP[transmission.type];
        enemy.disabled = 1;
        enemy.from_schedule = transmission.from_schedule;
        enemy.from_siphon = transmission.from_siphon;
        state.enemies.append(enemy);
        return true;
    });
}

// An enemy hits the player if adjacent, else moves; returns whether it hit.
inline bool act(State& state, Enemy& enemy, CellSet& occupied) {
    Player& player = state.player;
    if (has(NEIGHBOURS[enemy.cell], player.cell)) {
        player.hp = std::max(player.hp - 1, 0);
        return true;
    }
    int to = next_cell(state, enemy, occupied);
    if (to == enemy.cell) return false;
    if (has(state.in_line(), to)) enemy.last = to;
    enemy.cell = to;
    occupied = state.occupied();
    return false;
}

// Two sub-steps; in each, the enemies that can act do so in a fresh random order.
inline void move_enemies(State& state) {
    uint32_t done = 0;  // enemies that have hit, by slot
    CellSet occupied = state.occupied();
    for (int sub_step = 0; sub_step < MOST_STEPS; sub_step++) {
        uint32_t to_act = 0;
        for (int slot = 0; slot < state.enemies.count; slot++) {
            const Enemy& enemy = state.enemies[slot];
            bool acts = !enemy.disabled && !enemy.stunned && STEPS_PER_TURN[enemy.type] > sub_step;
            to_act |= uint32_t{acts} << slot;
        }
        to_act &= ~done;
        for (int drawn = 0; to_act; drawn++) {
            int index = sub_step * MAX_ENEMIES + drawn;
            int slot = nth(to_act, state.dice.choose(ENEMY_ORDER, size(to_act), index));
            to_act &= ~(1u << slot);
            if (act(state, state.enemies[slot], occupied)) done |= 1u << slot;
        }
    }
}

// Spawns the scheduled transmission, unless CALM is on, then those pending from siphoning.
inline void spawn_due(State& state) {
    if (!state.calm && state.turn >= state.next_task) {
        spawn(state, SCHEDULED_SPAWN, true, false);
        state.next_task = saturate(state.turn + state.interval);
    }
    int pending = std::min<int>(state.pending, CELLS);
    for (int i = 0; i < pending; i++) spawn(state, FIRST_PENDING_SPAWN + i, false, true);
    state.pending = 0;
}

// Counts down disabled enemies and ends all stuns.
inline void rest(State& state) {
    for (Enemy& enemy : state.enemies) {
        enemy.disabled = std::max(enemy.disabled - 1, 0);
        enemy.stunned = false;
    }
}

// Runs the enemy turn, after an action that ends the player's turn.
inline void enemy_turn(State& state, SavedPositions& saved) {
    if (state.step) {
        state.step = false;
        return;
    }
    state.turn = saturate(state.turn + 1);
    land_transmissions(state);
    move_enemies(state);
    spawn_due(state);
    rest(state);
    save(state, saved);
}

}  // namespace hackmatrix
