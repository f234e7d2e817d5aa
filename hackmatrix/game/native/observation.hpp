// Section 12: the observation as a compact record (`rules/observation.py` has its table).
#pragma once
#include <array>
#include <cstring>
#include <type_traits>

#include "movement.hpp"
#include "spawning.hpp"

namespace hackmatrix {

// By eight bits, eight bytes of 0 or 1.
constexpr std::array<uint64_t, 256> bytes_of_bits() {
    std::array<uint64_t, 256> bytes{};
    for (int bits = 0; bits < 256; bits++)
        for (int bit = 0; bit < 8; bit++) bytes[bits] |= uint64_t(bits >> bit & 1) << 8 * bit;
    return bytes;
}

inline constexpr auto BYTES_OF_BITS = bytes_of_bits();

// For each bit of a distance to the exit, the cells in whose distance it is set.
struct Distances {
    CellSet bits[4];

    explicit Distances(const State& state) : bits{} {
        Search search = from_exit(state);
        CellSet far = ALL_CELLS & ~search.frontier;
        // Bit n of a number is the parity of the multiples of 2^n from 1 to it.
        for (int steps = 1; steps < MAX_DISTANCE && search.frontier; steps++) {
            bits[0] ^= far;
            if (steps % 2 == 0) bits[1] ^= far;
            if (steps % 4 == 0) bits[2] ^= far;
            if (steps % 8 == 0) bits[3] ^= far;
            search.advance();
            far &= ~search.frontier;
        }
        for (int bit = 0; bit < 4; bit++)
            bits[bit] = (bits[bit] & ~far) | (MAX_DISTANCE >> bit & 1 ? far : 0);
    }
};

// The six planes of cells, without pieces; the cells are done 8 at a time, the last 4 alone.
inline void observe_cells(const State& state, uint8_t* record) {
    const Cells& cells = state.cells;
    CellSet question = cells.questions & ~cells.siphoned, program = cells.blocks & ~cells.data;
    CellSet low = cells.data | question, high = program | question;
    CellSet fire = line_of_fire(state), exit = of(state.exit);
    CellSet shown = ~cells.blocks | cells.siphoned;
    Distances distance(state);

    auto observe_some = [&](int from, auto count) {
        auto members = [=](CellSet set) { return BYTES_OF_BITS[set >> from & 255]; };
        auto read = [=](const uint8_t* values) {
            uint64_t some = 0;
            std::memcpy(&some, values + from, count);
            return some;
        };
        auto write = [=](int plane, uint64_t some) {
            std::memcpy(record + plane + from, &some, count);
        };
        uint64_t resources = read(cells.credits) | read(cells.energy) << 2;
        uint64_t open = ~(members(question) * 255);
        write(ENEMY_PLANE, 0);
        write(TRANSMISSION_PLANE, members(fire) << 7);
        write(CELL_PLANE, members(low) | members(high) << 1 | members(cells.siphoned) << 2 |
                              members(cells.center) << 3 | members(cells.siphons) << 4 |
                              members(exit) << 5);
        write(RESOURCE_PLANE, (members(shown) * 255 & resources) | members(distance.bits[0]) << 4 |
                                  members(distance.bits[1]) << 5 | members(distance.bits[2]) << 6 |
                                  members(distance.bits[3]) << 7);
        write(VALUE_PLANE, open & read(cells.value));
        write(SPAWN_PLANE, open & read(cells.spawn));
    };
    constexpr int last = CELLS / 8 * 8;
    for (int from = 0; from < last; from += 8)
        observe_some(from, std::integral_constant<size_t, 8>());
    observe_some(last, std::integral_constant<size_t, CELLS - last>());
}

// Enemies and transmissions, on planes that hold the cells already.
inline void observe_pieces(const State& state, uint8_t* record) {
    CellSet occupied = 0;  // cells of the enemies so far: the first represents all, even if hidden
    for (const Enemy& enemy : state.enemies) {
        bool is_first = !has(occupied, enemy.cell);
        occupied |= of(enemy.cell);
        if (!state.sees(enemy)) {
            record[ENEMY_PLANE + enemy.last] |= 1 << 7;
            continue;
        }
        uint8_t& visible = record[CELL_PLANE + enemy.cell];
        if (visible >> 6 < MAX_SEEN) visible = visible + (1 << 6);
        if (is_first)
            record[ENEMY_PLANE + enemy.cell] |= 
                (enemy.type + 1) | enemy.hp << 3 | enemy.stunned << 5 | enemy.from_siphon << 6;
    }
    for (const Transmission& coming : state.transmissions)
        record[TRANSMISSION_PLANE + coming.cell] |= 
            1 | std::min<int>(coming.turns, MAX_TURNS) << 1 |
            (state.show ? coming.type + 1 : 0) << 4;
}

// The compact record, `RECORD_SIZE` bytes.
SEPARATE void observe(const State& state, uint8_t* record) {
    const Player& player = state.player;
    observe_cells(state, record);
    observe_pieces(state, record);
    uint8_t* to = record + SCALARS;
    *to++ = player.cell;
    *to++ = player.hp;
    *to++ = state.stage;
    *to++ = state.show | state.calm << 1 | state.step << 2;
    *to++ = state.atk_uses;
    *to++ = state.saved;
    for (int scalar : {player.credits, player.energy, player.siphons, player.attack, player.score,
                       state.turn, state.next_task, state.interval, state.pending}) {
        *to++ = scalar;
        *to++ = scalar >> 8;
    }
    for (int shift = 0; shift < 32; shift += 8) *to++ = state.owned >> shift;
}

}  // namespace hackmatrix
