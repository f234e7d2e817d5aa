// Section 12, continued: the float features of a compact record (`rules/observation.py`).
#pragma once
#include "board.hpp"
#include "record.hpp"

namespace hackmatrix {

constexpr int CLASSIC_SIZE = 1545, FULL_SIZE = 1946;

// Writes features one after the other.
struct Features {
    float* next;

    void add(float value) { *next++ = value; }
    void share(int value, int of) { add(static_cast<float>(value) / static_cast<float>(of)); }
    void at_most_1(int value, int of) { share(std::min(value, of), of); }

    // As many features, of which that of the number is 1: the first for 1, none for 0.
    void one_hot(int value, int size) {
        for (int i = 1; i <= size; i++) add(static_cast<float>(value == i));
    }
};

inline void features_of_player(const Record& record, Features& to) {
    to.share(row(record.byte(ScalarAt::cell)), SIZE - 1);
    to.share(col(record.byte(ScalarAt::cell)), SIZE - 1);
    to.share(record.byte(ScalarAt::hp), PLAYER_HP);
    to.at_most_1(record.scalar(ScalarAt::credits), 50);
    to.at_most_1(record.scalar(ScalarAt::energy), 50);
    to.share(record.byte(ScalarAt::stage) - 1, LAST_STAGE - 1);
    to.share(record.scalar(ScalarAt::siphons), 10);
    to.share(record.scalar(ScalarAt::attack) - 1, 2);
    to.add(record.byte(ScalarAt::flags) & 1);
    to.add(record.byte(ScalarAt::flags) >> 1 & 1);
    for (int program = 0; program < NUM_PROGRAMS; program++)
        to.add(record.owned() >> program & 1);
}

inline void features_of_cell(const Record& record, int cell, Features& to) {
    int enemy = record.plane(ENEMY_PLANE, cell), content = record.plane(CELL_PLANE, cell);
    int resource = record.plane(RESOURCE_PLANE, cell), value = record.plane(VALUE_PLANE, cell);
    int block = content & 3;
    to.one_hot(enemy & 7, ENEMY_TYPES);
    to.share(enemy >> 3 & 3, 3);
    to.add(enemy >> 5 & 1);
    to.add(enemy >> 6 & 1);
    to.one_hot(block, QUESTION);
    to.share(block == DATA ? value : 0, MAX_POINTS);
    to.add(block && content >> 2 & 1);
    to.one_hot(block == PROGRAM ? value + 1 : 0, NUM_PROGRAMS);
    to.at_most_1(record.plane(SPAWN_PLANE, cell), 9);
    to.share(record.plane(TRANSMISSION_PLANE, cell) >> 1 & 7, MAX_TURNS);
    to.share(resource & 3, 3);
    to.share(resource >> 2 & 3, 3);
    for (int bit : {4, 5, 3}) to.add(content >> bit & 1);
}

// What the layout `full` adds for a cell.
inline void more_of_cell(const Record& record, int cell, Features& to) {
    int coming = record.plane(TRANSMISSION_PLANE, cell), content = record.plane(CELL_PLANE, cell);
    to.one_hot(coming >> 4 & 7, ENEMY_TYPES);
    to.add(coming & 1);
    to.add(content >> 2 & 1);
    to.add(record.plane(ENEMY_PLANE, cell) >> 7);
    to.share(content >> 6, MAX_SEEN);
    to.add(coming >> 7);
    to.share(record.plane(RESOURCE_PLANE, cell) >> 4, MAX_DISTANCE);
}

// What the layout `full` adds for the game.
inline void more_of_game(const Record& record, Features& to) {
    int credits = record.scalar(ScalarAt::credits), energy = record.scalar(ScalarAt::energy);
    int until_task = record.scalar(ScalarAt::next_task) - record.scalar(ScalarAt::turn);
    to.add(record.byte(ScalarAt::flags) >> 2 & 1);
    to.share(record.scalar(ScalarAt::turn), 20);
    to.share(std::clamp(until_task, -FIRST_INTERVAL, FIRST_INTERVAL), FIRST_INTERVAL);
    to.share(record.scalar(ScalarAt::interval), FIRST_INTERVAL);
    to.at_most_1(record.scalar(ScalarAt::pending), 9);
    to.at_most_1(record.byte(ScalarAt::atk_uses), MAX_ATK_USES);
    to.at_most_1(record.scalar(ScalarAt::score), 50);
    to.at_most_1(record.byte(ScalarAt::saved), MAX_SAVED_STATES);
    to.at_most_1(credits, 20);
    to.at_most_1(energy, 20);
    to.one_hot(record.byte(ScalarAt::stage), LAST_STAGE);
    for (int program = 0; program < NUM_PROGRAMS; program++) {
        const Program& cost = PROGRAMS[program];
        bool can_pay = credits >= cost.credits && energy >= cost.energy;
        to.add((record.owned() >> program & 1) && can_pay);
    }
}

// The features of the layout `classic`, or of `full`, which begin with the same.
inline void features(const uint8_t* bytes, bool full, float* out) {
    Record record{bytes};
    Features to{out};
    features_of_player(record, to);
    for (int cell = 0; cell < CELLS; cell++) features_of_cell(record, cell, to);
    if (!full) return;
    for (int cell = 0; cell < CELLS; cell++) more_of_cell(record, cell, to);
    more_of_game(record, to);
}

}  // namespace hackmatrix
