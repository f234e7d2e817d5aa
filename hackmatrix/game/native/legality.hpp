// Section 2: whether bytes from outside are a game, a position or a record.
//
// The rules index arrays by what a state holds and check nothing, so nothing reaches them unchecked:
// each face checks once where bytes or words become a state (`numpy.cpp`, `xla.cpp`).
#pragma once
#include "record.hpp"
#include "undo.hpp"

namespace hackmatrix {

// Whether these are 0 or 1: any other byte of a `bool` is undefined behaviour once it is read as one.
template <class... Flags>
bool are_flags(const Flags&... flags) {
    uint8_t bits = 0;
    ((bits |= reinterpret_cast<const uint8_t&>(flags)), ...);
    return bits <= 1;
}

// Whether none of these values is negative.
template <class... Numbers>
bool are_counts(Numbers... values) { return (values | ...) >= 0; }

inline bool is_legal(const Cells& cells) {
    CellSet all = cells.blocks | cells.siphons | cells.siphoned | cells.center;
    if (all & ~ALL_CELLS || (cells.data | cells.questions) & ~cells.blocks) return false;
    uint8_t resource = 0, value = 0, spawn = 0;
    for (int cell = 0; cell < CELLS; cell++) {
        resource = std::max({resource, cells.credits[cell], cells.energy[cell]});
        value = std::max(value, cells.value[cell]);
        spawn = std::max(spawn, cells.spawn[cell]);
    }
    if (resource > MAX_RESOURCE || value >= NUM_PROGRAMS || spawn > MAX_SPAWN) return false;
    for (int cell : members(cells.data))
        if (cells.value[cell] > MAX_POINTS) return false;
    return true;
}

inline bool is_legal(const List<Enemy, MAX_ENEMIES>& enemies) {
    if (enemies.count > MAX_ENEMIES) return false;
    return std::all_of(enemies.begin(), enemies.end(), [](const Enemy& enemy) {
        return enemy.type < ENEMY_TYPES && enemy.cell < CELLS && enemy.last < CELLS &&
               1 <= enemy.hp && enemy.hp <= ENEMY_HP[enemy.type] &&
               enemy.disabled <= MAX_DISABLED &&
               are_flags(enemy.stunned, enemy.from_schedule, enemy.from_siphon);
    });
}

// No two transmissions are on one cell, and none is on a block: else there might be more than 36.
inline bool is_legal(const List<Transmission, MAX_TRANSMISSIONS>& transmissions, CellSet blocks) {
    if (transmissions.count > MAX_TRANSMISSIONS) return false;
    return std::all_of(transmissions.begin(), transmissions.end(), [&](const Transmission& coming) {
        bool fits = coming.cell < CELLS && !has(blocks, coming.cell) &&
                    coming.type < ENEMY_TYPES && coming.turns >= 0 &&
                    are_flags(coming.from_schedule, coming.from_siphon);
        if (fits) blocks |= of(coming.cell);
        return fits;
    });
}

// Whether these are the owned programs, each of them once.
inline bool is_legal(uint32_t owned, const uint8_t* acquired) {
    if (owned >> NUM_PROGRAMS) return false;
    uint32_t left = owned;
    for (int index = 0, count = size(owned); index < count; index++) {
        if (acquired[index] >= NUM_PROGRAMS) return false;
        left &= ~(1u << acquired[index]);
    }
    return !left;
}

// The part of a position that is not legal, or null.
inline const char* fault(const Position& position) {
    const Player& player = position.player;
    if (player.cell >= CELLS || player.hp > PLAYER_HP || player.attack < 1 ||
        !are_counts(player.credits, player.energy, player.siphons, player.score))
        return "the player";
    if (!is_legal(position.owned, position.acquired)) return "the programs";
    if (!are_counts(position.turn) || position.atk_uses > MAX_ATK_USES ||
        !are_flags(position.show, position.calm))
        return "the stage";
    if (!is_legal(position.cells)) return "the cells";
    if (!is_legal(position.enemies)) return "the enemies";
    if (!is_legal(position.transmissions, position.cells.blocks)) return "the transmissions";
    return nullptr;
}

// The part of a game that is not legal, or null; saved positions are checked apart.
inline const char* fault(const State& state) {
    if (const char* part = fault(static_cast<const Position&>(state))) return part;
    if (state.stage < 1 || state.stage > LAST_STAGE || state.exit >= CELLS ||
        has(state.cells.blocks, state.exit) || !are_flags(state.step) ||
        !are_counts(state.interval, state.next_task, state.pending))
        return "the stage";
    if (state.saved > MAX_SAVED_STATES || state.newest_saved >= MAX_SAVED_STATES)
        return "the positions for UNDO";
    return state.over > INVALID_ACTION ? "the ending" : nullptr;
}

// Whether UNDO can come to the position at an index.
inline bool is_in_use(const State& state, int index) {
    return (state.newest_saved + MAX_SAVED_STATES - index) % MAX_SAVED_STATES < state.saved;
}

// The part that is not legal of a position at an index of a legal game, or null; one that is not in
// use may be anything.
inline const char* fault(const State& state, const Position& saved, int index) {
    bool fits = !fault(saved) && !has(saved.cells.blocks, state.exit);
    return fits || !is_in_use(state, index) ? nullptr : "the positions for UNDO";
}

// The part of a game that is not legal, its saved positions included, or null.
inline const char* fault(const State& state, const SavedPositions& saved) {
    const char* part = fault(state);
    for (int index = 0; index < MAX_SAVED_STATES && !part; index++)
        part = fault(state, saved.positions[index], index);
    return part;
}

// The part of a compact record that no observation has, or null. The zeros of an observation that
// was not made count as one.
inline const char* record_fault(const uint8_t* bytes) {
    Record record{bytes};
    uint8_t enemy_type = 0, coming = 0, turns = 0, far = 0, value = 0, spawn = 0;
    for (int cell = 0; cell < CELLS; cell++) {
        auto most = [&](uint8_t& largest, int plane, int first, int bits) {
            uint8_t entry = record.plane(plane, cell) >> first & bits;
            largest = std::max(largest, entry);
        };
        most(enemy_type, ENEMY_PLANE, 0, 7);
        most(turns, TRANSMISSION_PLANE, 1, 7);
        most(coming, TRANSMISSION_PLANE, 4, 7);
        most(far, RESOURCE_PLANE, 4, 15);
        most(value, VALUE_PLANE, 0, 255);
        most(spawn, SPAWN_PLANE, 0, 255);
    }
    if (enemy_type > ENEMY_TYPES) return "the enemies";
    if (coming > ENEMY_TYPES || turns > MAX_TURNS) return "the transmissions";
    if (far > MAX_DISTANCE || value >= NUM_PROGRAMS || spawn > MAX_SPAWN) return "the cells";
    if (record.byte(ScalarAt::cell) >= CELLS || record.byte(ScalarAt::hp) > PLAYER_HP ||
        record.byte(ScalarAt::stage) > LAST_STAGE || record.byte(ScalarAt::flags) > 7 ||
        record.byte(ScalarAt::atk_uses) > MAX_ATK_USES ||
        record.byte(ScalarAt::saved) > MAX_SAVED_STATES)
        return "the numbers";
    for (int at = ScalarAt::credits; at <= ScalarAt::pending; at += 2)
        if (record.scalar(at) > LIMIT) return "the numbers";
    if (record.owned() >> NUM_PROGRAMS || record.byte(ScalarAt::owned + 3)) return "the programs";
    return nullptr;
}

}  // namespace hackmatrix
