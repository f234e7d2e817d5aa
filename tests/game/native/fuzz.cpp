// Plays games for the sanitizers to watch: from positions full of pieces, with actions valid or not,
// and from states, saved positions, words and records that a stranger changed, unless refused.
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "batch.hpp"
#include "features.hpp"
#include "imagination.hpp"
#include "jax_state.hpp"
#include "tactical.hpp"

using namespace hackmatrix;

namespace {

uint32_t seed, draws = 0;
unsigned long long steps = 0, wins = 0, sum = 0, accepted = 0, refused = 0;

int below(int n) { return to_range(draw(1, seed, draws++, 0, 0), n); }

bool flip() { return below(2) == 0; }

// Any legal position on a board that is there: many pieces, all programs, numbers near their limits.
void fill(State& state) {
    for (int cell : members(ALL_CELLS & ~state.cells.blocks))
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

// Takes some random actions; a game stays legal in it.
void play(State& state, SavedPositions& saved, int most) {
    uint8_t seen[RECORD_SIZE];
    for (int left = most; left > 0 && valid_actions(state); left--) {
        int32_t parts[NUM_PARTS];
        uint32_t mask = valid_actions(state);
        step(state, saved, nth(mask, below(size(mask))), parts);
        observe(state, seen);
        for (int byte : seen) sum += uint64_t(byte);
        const char* part = fault(state, saved);
        if (!part) part = record_fault(seen);
        if (!part) continue;
        std::fprintf(stderr, "seed %u: a legal game became illegal: %s\n", seed, part);
        std::exit(1);
    }
}

// Plays on for some actions in a game imagined by a record, with other records to go back to.
void play_imagined(const uint8_t* record) {
    uint8_t remembered[MAX_SAVED_STATES * RECORD_SIZE];
    for (int index = 0; index < MAX_SAVED_STATES; index++)
        std::memcpy(remembered + index * RECORD_SIZE, record, RECORD_SIZE);
    State state;
    SavedPositions saved{};
    if (imagine(record, remembered, below(MAX_SAVED_STATES + 1), {draws, 3, 0}, state, saved)) {
        std::fprintf(stderr, "a true observation was refused\n");
        std::exit(1);
    }
    play(state, saved, below(4));
}

// Changes some bytes: single bits, whole numbers to wild ones, and stretches to one byte.
void damage_bytes(void* bytes, int size) {
    auto* byte = static_cast<uint8_t*>(bytes);
    for (int left = 1 + below(1 << below(6)); left > 0; left--) {
        const uint32_t wild[] = {0, 1, 31, 32, 36, 127, 128, 250, 255, 32767, 65535, ~0u,
                                 draw(7, seed, draws++, 0, 0)};
        uint32_t word = wild[below(std::size(wild))];
        int at = below(size), width = 1 << below(3), way = below(20);
        if (way == 0)
            std::memset(byte + at, below(flip() ? 4 : 256), std::min(below(50), size - at));
        else if (way < 10)
            byte[at] ^= 1 << below(8);
        else
            std::memcpy(byte + std::min(at / width * width, size - width), &word, width);
    }
}

// Plays on from what the check let through.
void play_unless(const char* part, State& state, SavedPositions& saved) {
    part ? refused++ : accepted++;
    if (!part) play(state, saved, below(30));
}

void play_damaged_bytes(State state, SavedPositions saved) {
    if (flip()) damage_bytes(&state, sizeof state);
    if (flip()) damage_bytes(&saved, sizeof saved);
    play_unless(fault(state, saved), state, saved);
}

void play_damaged_words(State state, SavedPositions saved) {
    std::vector<uint32_t> words(STATE_WORDS), rows(MAX_SAVED_STATES * POSITION_WORDS);
    ToWords to{words.data()};
    exchange(to, state);
    for (int index = 0; index < MAX_SAVED_STATES; index++) {
        Position copy = fault(saved.positions[index]) ? Position{} : saved.positions[index];
        ToWords to_row{rows.data() + index * POSITION_WORDS};
        exchange(to_row, copy);
    }
    if (flip()) damage_bytes(words.data(), int(4 * words.size()));
    if (flip()) damage_bytes(rows.data(), int(4 * rows.size()));
    const char* part = take_words(words.data(), state);
    if (!part) part = take_rows(rows.data(), state, saved);
    play_unless(part, state, saved);
}

void read_damaged_records(const uint8_t* record) {
    std::vector<uint8_t> seen(record, record + RECORD_SIZE), old(MAX_SAVED_STATES * RECORD_SIZE);
    for (int index = 0; index < MAX_SAVED_STATES; index++)
        std::copy(seen.begin(), seen.end(), old.begin() + index * RECORD_SIZE);
    if (flip()) damage_bytes(seen.data(), RECORD_SIZE);
    if (flip()) damage_bytes(old.data(), int(old.size()));
    std::vector<float> features_(FULL_SIZE);
    if (!record_fault(seen.data())) {
        features(seen.data(), true, features_.data());
        Tactical integers;
        tactical_numbers(seen.data(), integers);
        sum += uint64_t(integers.fewest_hits) + uint64_t(features_[0]);
    }
    State state;
    SavedPositions saved{};
    int count = below(20) ? below(MAX_SAVED_STATES + 1) : below(1000) - 500;
    play_unless(imagine(seen.data(), old.data(), count, {draws, 3, 0}, state, saved), state, saved);
}

}  // namespace

int main(int, char** argv) {
    std::time_t end = std::time(nullptr) + std::atoi(argv[1]);
    seed = uint32_t(std::strtoul(argv[2], nullptr, 10));
    for (uint32_t game = 0; std::time(nullptr) < end; game++) {
        State state;
        new_game(state, seed + game, 0);
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
            if (below(4) == 0 && state.over == RUNNING) play_imagined(record);
            switch (below(8)) {
                case 0: play_damaged_bytes(state, saved); break;
                case 1: play_damaged_words(state, saved); break;
                case 2: read_damaged_records(record);
            }
            steps++;
            if (state.player.hp && below(3)) state.player.hp = PLAYER_HP;
        }
        wins += state.over == WON;
    }
    std::printf("%llu steps, %llu wins, %llu damaged games accepted, %llu refused, sum %llu\n",
                steps, wins, accepted, refused, sum);
}
