// The reward `progress`; `environments/hackmatrix/training_reward.py` says why it is made so.
#pragma once
#include <cmath>

#include "state.hpp"

namespace hackmatrix {

// The reward `progress` of a step, from the player before and after it.
//
// Each term is added with one rounding, as XLA compiles it.
inline float progress(const Player& before, const Player& after, bool completed, bool won,
                      bool died) {
    auto gained = [](int from, int to, int most) { return std::min(to, most) - std::min(from, most); };
    int siphons = gained(before.siphons, after.siphons, MAX_SIPHONS);
    int hoard = gained(before.credits, after.credits, HOARD) +
                gained(before.energy, after.energy, HOARD);
    float paid = STAGE_PAID * completed + WIN_PAID * won - DEATH_COST * died;
    paid = std::fma(HP_WORTH, static_cast<float>(after.hp - before.hp), paid);
    paid = std::fma(SIPHON_WORTH, static_cast<float>(siphons), paid);
    return std::fma(RESOURCE_WORTH, static_cast<float>(hoard), paid);
}

}  // namespace hackmatrix
