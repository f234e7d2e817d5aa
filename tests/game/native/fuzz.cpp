// Plays games from positions full of pieces, with actions valid or not, for the sanitizers to watch.
#include <cstdio>
#include <cstdlib>

#include "batch.hpp"
#include "imagined.hpp"

using namespace hackmatrix;

namespace {

uint32_t number = 0;

int below(int n) { return bounded(draw(1, 2, number++, 0, 0), n); }

bool flip() { return below(2) == 0; }

// Any legal position on a board that is there: many pieces, all programs, numbers near their limits.
void fill(State& state) {
    for (int cell : each(ALL_CELLS & ~state.cells.blocks))
        if (flip()) state.transmissions.append({int16_t(below(4)), uint8_t(cell),
                                                uint8_t(below(ENEMY_TYPES)), flip(), flip()});
    for (int i = below(MAX_ENEMIES + 1); i > 0; i--) {
        uint8_t type = uint8_t(below(ENEMY_TYPES)), cell = uint8_t(below(CELLS));
        state.enemies.append({type, cell, int8_t(1 + below(ENEMY_HP[type])), uint8_t(below(3)),
                              flip(), flip(), flip(), cell});
    }
    state.owned = (1u << NUM_PROGRAMS) - 1;
    for (int i = 0; i < NUM_PROGRAMS; i++) state.acquired[i] = uint8_t(i);
    for (int16_t* most : {&state.player.credits, &state.player.energy, &state.player.siphons,
                          &state.player.attack, &state.player.score, &state.turn,
                          &state.next_task, &state.pending, &state.interval})
        if (below(4) == 0) *most = LIMIT;
    state.player.credits = state.player.energy = int16_t(flip() ? LIMIT : 20);
    state.player.cell = uint8_t(below(CELLS));
    state.stage = uint8_t(1 + below(LAST_STAGE));
}

// Plays on for some actions in a game imagined by a record, with other records to go back to.
uint64_t play_imagined(const uint8_t* record) {
    uint8_t remembered[MAX_SAVED_STATES * RECORD_SIZE], seen[RECORD_SIZE];
    for (int place = 0; place < MAX_SAVED_STATES; place++)
        std::memcpy(remembered + place * RECORD_SIZE, record, RECORD_SIZE);
    State state;
    SavedPositions saved{};
    imagine(record, remembered, below(MAX_SAVED_STATES + 1), {number, 3, 0}, state, saved);
    uint64_t sum = 0;
    for (int left = below(4); left > 0 && valid_actions(state); left--) {
        int32_t parts[NUM_PARTS];
        uint32_t mask = valid_actions(state);
        step(state, saved, nth(mask, below(size(mask))), parts);
        observe(state, seen);
        for (int byte : seen) sum += uint64_t(byte);
    }
    return sum;
}

}  // namespace

int main(int, char** argv) {
    int games = std::atoi(argv[1]);
    uint64_t steps = 0, wins = 0, sum = 0;
    for (int game = 0; game < games; game++) {
        State state = new_game(uint32_t(game), 0);
        SavedPositions saved{};
        state.transmissions.count = 0;
        if (game % 4) fill(state);
        while (state.over == RUNNING && below(500)) {
            int32_t parts[NUM_PARTS];
            uint8_t record[RECORD_SIZE];
            uint32_t mask = valid_actions(state);
            int chosen = mask && below(200) ? nth(mask, below(size(mask))) : below(40) - 6;
            step(state, saved, chosen, parts);
            observe(state, record);
            for (int part : parts) sum += uint64_t(part);
            for (int byte : record) sum += uint64_t(byte);
            if (below(4) == 0 && state.over == RUNNING) sum += play_imagined(record);
            steps++;
            if (state.player.hp && below(3)) state.player.hp = PLAYER_HP;
        }
        wins += state.over == WON;
    }
    std::printf("%llu steps, %llu wins, sum %llu\n", (unsigned long long)steps,
                (unsigned long long)wins, (unsigned long long)sum);
}
