// Section 12, continued: reads a compact record (`rules/observation.py`).
#pragma once
#include "rules.hpp"

namespace hackmatrix {

// A compact record, read.
struct Record {
    const uint8_t* bytes;

    int plane(int first, int cell) const { return bytes[first + cell]; }
    int byte(int place) const { return bytes[NUMBERS + place]; }
    int number(int place) const { return byte(place) | byte(place + 1) << 8; }
    uint32_t owned() const { return uint32_t(number(NumberAt::owned) | byte(NumberAt::owned + 2) << 16); }
};

}  // namespace hackmatrix
