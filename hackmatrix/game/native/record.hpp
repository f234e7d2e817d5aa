// Section 12, continued: reads a compact record (`rules/observation.py`).
#pragma once
#include "rules.hpp"

namespace hackmatrix {

// A compact record, read.
struct Record {
    const uint8_t* bytes;

    int plane(int first, int cell) const { return bytes[first + cell]; }
    int byte(int offset) const { return bytes[SCALARS + offset]; }
    int scalar(int offset) const { return byte(offset) | byte(offset + 1) << 8; }
    uint32_t owned() const { return uint32_t(scalar(ScalarAt::owned) | byte(ScalarAt::owned + 2) << 16); }
};

}  // namespace hackmatrix
