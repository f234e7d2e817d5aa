// Section 8, UNDO: saves and restores positions.
#pragma once
#include <cstring>

#include "state.hpp"

namespace hackmatrix {

// The saved positions of a game, a ring; `State` knows how many there are and which is the newest.
struct SavedPositions {
    Position positions[MAX_SAVED_STATES];
};

// Copies a position; of the pieces only those that are there.
inline void snapshot(const Position& from, Position& to) {
    std::memcpy(static_cast<void*>(&to), &from, offsetof(Position, enemies));
    to.enemies.assign(from.enemies);
    to.transmissions.assign(from.transmissions);
}

// The place of the position that is saved next.
inline int next_saved(const State& state) { return (state.newest_saved + 1) % MAX_SAVED_STATES; }

// Saves the position; only the newest 4 are kept.
inline void save(State& state, SavedPositions& saved) {
    state.newest_saved = next_saved(state);
    state.saved = std::min(state.saved + 1, MAX_SAVED_STATES);
    snapshot(state, saved.positions[state.newest_saved]);
}

// Restores the newest saved position and removes it from the saved ones.
inline void restore(State& state, const SavedPositions& saved) {
    snapshot(saved.positions[state.newest_saved], state);
    state.newest_saved = (state.newest_saved + MAX_SAVED_STATES - 1) % MAX_SAVED_STATES;
    state.saved--;
}

// Clears the saved positions.
inline void forget(State& state) { state.saved = 0; }

}  // namespace hackmatrix
