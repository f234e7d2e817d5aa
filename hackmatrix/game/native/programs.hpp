// Section 8: the 23 programs. UNDO's memory is in `undo.hpp`.
#pragma once
#include "combat.hpp"
#include "movement.hpp"
#include "undo.hpp"

namespace hackmatrix {

// The daemon nearest to the player, the first in the list on a tie; null if there is none.
inline const Enemy* nearest_daemon(const State& state) {
    const Enemy* nearest = nullptr;
    int least = 2 * SIZE;
    for (const Enemy& enemy : state.enemies) {
        int distance = manhattan(enemy.cell, state.player.cell);
        if (enemy.type == DAEMON && distance < least) {
            nearest = &enemy;
            least = distance;
        }
    }
    return nearest;
}

// Whether any unsiphoned block still brings transmissions.
inline bool any_spawn_left(const State& state) {
    for (int cell : members(state.unsiphoned_blocks()))
        if (state.cells.spawn[cell] > 0) return true;
    return false;
}

// Whether a program's own condition holds, apart from owning and affording it.
inline bool applicable(const State& state, int program) {
    const Cells& cells = state.cells;
    int here = state.player.cell;
    switch (program) {
        case PUSH: case PULL: case POLY: return state.enemies.count;
        case CRASH: return (cells.blocks | state.occupied()) & AROUND[here];
        case WARP: return state.enemies.count || state.transmissions.count;
        case DEBUG: return cells.blocks & state.enemies.cells();
        case ROW: return BOARD.row[row(here)] & state.enemies.cells();
        case COL: return BOARD.col[col(here)] & state.enemies.cells();
        case UNDO: return state.saved;
        case SHOW: return !state.show;
        case RESET: return state.player.hp < PLAYER_HP;
        case CALM: return !state.calm;
        case D_BOM: return state.any_of_type(DAEMON);
        case DELAY: return state.transmissions.count;
        case ANTI_V: return state.any_of_type(VIRUS);
        case SCORE: return state.stage < LAST_STAGE;
        case REDUC: return any_spawn_left(state);
        case ATK_PLUS: return state.atk_uses < MAX_ATK_USES;
        case HACK: return cells.siphoned;
        default: return true;  // WAIT, STEP, SIPH+, EXCH
    }
}

// Whether a program is owned, affordable and applicable.
inline bool can_run(const State& state, int index) {
    const Program& program = PROGRAMS[index];
    return state.owned >> index & 1 && state.player.credits >= program.credits &&
           state.player.energy >= program.energy && applicable(state, index);
}

// DEBUG, ROW, COL, D_BOM, ANTI-V and HACK; returns the kills that give a reward.
inline int strike(State& state, int program) {
    CellSet struck = ALL_CELLS;
    int here = state.player.cell, amount = state.player.attack, kills = 0;
    switch (program) {
        case DEBUG: struck = state.cells.blocks; break;
        case ROW: struck = BOARD.row[row(here)]; break;
        case COL: struck = BOARD.col[col(here)]; break;
        case HACK: struck = state.cells.siphoned; break;
        case ANTI_V: amount = 1; break;
        case D_BOM: {
            const Enemy* daemon = nearest_daemon(state);
            struck = AROUND[daemon->cell];
            amount = 1;
            kills = !daemon->from_schedule;
            state.enemies.remove_if([=](const Enemy& enemy) { return &enemy == daemon; });
        }
    }
    for (Enemy& enemy : state.enemies)
        if (has(struck, enemy.cell) && (program != ANTI_V || enemy.type == VIRUS))
            damage(enemy, amount);
    return kills + remove_dead(state);
}

// POLY: every enemy becomes another type and keeps its damage; returns the rewarded kills.
inline int poly(State& state) {
    for (int index = 0; index < state.enemies.count; index++) {
        Enemy& enemy = state.enemies[index];
        int damage_taken = ENEMY_HP[enemy.type] - enemy.hp;
        int other = state.dice.choose(POLY_TYPE, ENEMY_TYPES - 1, index);
        enemy.type = other + (other >= enemy.type);
        enemy.hp = ENEMY_HP[enemy.type] - damage_taken;
        enemy.last = enemy.cell;
    }
    return remove_dead(state);
}

// WARP: destroys a random enemy or transmission and takes its cell; returns the rewarded kills.
inline int warp(State& state) {
    int enemies = state.enemies.count;
    int chosen = state.dice.choose(WARP_TARGET, enemies + state.transmissions.count);
    bool is_enemy = chosen < enemies;
    uint8_t cell = is_enemy ? state.enemies[chosen].cell
                            : state.transmissions[chosen - enemies].cell;
    state.player.cell = cell;
    return is_enemy ? destroy_all_on(state, cell) : destroy_transmission(state, cell);
}

// CRASH: clears the 8 cells around of blocks and pieces; returns the rewarded kills.
inline int crash(State& state) {
    Cells& cells = state.cells;
    int kills = 0;
    for (int cell : members(AROUND[state.player.cell])) {
        cells.value[cell] = cells.spawn[cell] = 0;
        kills += destroy_all_on(state, cell) + destroy_transmission(state, cell);
    }
    CellSet rest = ~AROUND[state.player.cell];
    cells.blocks &= rest;
    cells.data &= rest;
    cells.questions &= rest;
    return kills;
}

constexpr int sign(int x) { return (x > 0) - (x < 0); }

// The cell where PUSH (away) or PULL moves an enemy from `cell`; `NOWHERE` if it has to stay.
inline int shift_goal(int here, int cell, bool away) {
    int dr = sign(row(cell) - row(here)) * (away ? 1 : -1);
    int dc = sign(col(cell) - col(here)) * (away ? 1 : -1);
    int goal = NOWHERE, best = 0;
    const int candidates[][2] = {{dr, dc}, {dr, 0}, {0, dc}};
    for (auto& [r, c] : candidates) {
        int to_row = row(cell) + r, to_col = col(cell) + c, to = to_row * SIZE + to_col;
        if ((r == 0 && c == 0) || !on_board(to_row, to_col) || to == here) continue;
        int distance = manhattan(to, here);
        if (goal == NOWHERE || (away ? distance > best : distance < best)) {
            goal = to;
            best = distance;
        }
    }
    return goal;
}

// PUSH (away) and PULL: moves every enemy one cell away from the player or towards it.
inline void shift(State& state, bool away) {
    CellSet occupied = 0;
    for (Enemy& enemy : state.enemies) {
        int goal = shift_goal(state.player.cell, enemy.cell, away);
        if (goal == NOWHERE || has(occupied, goal)) continue;
        occupied |= of(goal);
        enemy.cell = goal;
    }
}

// Programs that change numbers and flags alone. WAIT changes nothing: it only ends the turn.
inline void change_numbers(State& state, int program) {
    Player& player = state.player;
    switch (program) {
        case STEP: state.step = true; break;
        case SIPH_PLUS: player.siphons = saturate(player.siphons + 1); break;
        case EXCH: player.energy = saturate(player.energy + EXCH_ENERGY); break;
        case SHOW: state.show = true; break;
        case RESET: player.hp = PLAYER_HP; break;
        case CALM: state.calm = true; break;
        case SCORE: player.score = saturate(player.score + LAST_STAGE - state.stage); break;
        case DELAY:
            for (Transmission& coming : state.transmissions)
                coming.turns = saturate(coming.turns + DELAY_TURNS);
            break;
        case REDUC:
            for (int cell : members(state.unsiphoned_blocks()))
                if (state.cells.spawn[cell] > 0) state.cells.spawn[cell]--;
            break;
        case ATK_PLUS:
            player.attack = saturate(player.attack + 1);
            state.atk_uses++;
    }
}

// Pays for a program and runs it; returns the kills that give a reward.
inline int run(State& state, const SavedPositions& saved, int program) {
    state.player.credits = state.player.credits - PROGRAMS[program].credits;
    state.player.energy = state.player.energy - PROGRAMS[program].energy;
    switch (program) {
        case PUSH: case PULL: shift(state, program == PUSH); return 0;
        case CRASH: return crash(state);
        case WARP: return warp(state);
        case POLY: return poly(state);
        case UNDO: restore(state, saved); return 0;
        case DEBUG: case ROW: case COL: case D_BOM: case ANTI_V: case HACK:
            return strike(state, program);
        default: change_numbers(state, program); return 0;
    }
}

}  // namespace hackmatrix
