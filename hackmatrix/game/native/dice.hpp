// Randomness: a pure function of the game's (stream, episode), the action count and the site.
#pragma once
#include <cstdint>

#include "rules.hpp"

namespace hackmatrix {

struct Words {
    uint32_t x, y, z, w;
};

constexpr Words mix(Words m) {
    m.x += m.y * m.w;
    m.y += m.z * m.x;
    m.z += m.x * m.y;
    m.w += m.y * m.z;
    return m;
}

constexpr uint32_t scrambled(uint32_t word) { return word * 1664525u + 1013904223u; }
constexpr uint32_t folded(uint32_t word) { return word ^ word >> 16; }

// One uniform word for a random draw of a game: the last word of pcg4d of these four numbers.
constexpr uint32_t draw(uint32_t stream, uint32_t episode, uint32_t clock, int site, int index) {
    uint32_t which = static_cast<uint32_t>(site) << 16 | static_cast<uint32_t>(index);
    Words m = mix({scrambled(stream), scrambled(episode), scrambled(clock), scrambled(which)});
    return mix({folded(m.x), folded(m.y), folded(m.z), folded(m.w)}).w;
}

// A number 0..n-1 from a uniform word: the high word of the 32 x 32 bit product.
constexpr int to_range(uint32_t word, int n) {
    return static_cast<int>(uint64_t{word} * static_cast<uint32_t>(n) >> 32);
}

// The dice of one game.
struct Dice {
    uint32_t stream, episode, clock;

    // The number of one of several options, all equally likely.
    constexpr int choose(Site site, int options, int index = 0) const {
        return to_range(draw(stream, episode, clock, site, index), options);
    }
};

}  // namespace hackmatrix
