// The reward `progress`; `environments/hackmatrix/training_reward.py` says why it is made so.
#pragma once
#include "state.hpp"

namespace hackmatrix {

// The reward `progress` of a step, from the player before and after it.
inline float progress(const Player& before, const Player& after, bool completed, bool won,
                      bool died) {
    auto gained = [](int from, int to, int most) {
        return static_cast<float>(std::min(to, most) - std::min(from, most));
    };
    float paid = STAGE_PAID * completed + WIN_PAID * won - DEATH_COST * died;
    paid += HP_WORTH * static_cast<float>(after.hp - before.hp);
    paid += SIPHON_WORTH * gained(before.siphons, after.siphons, MAX_SIPHONS);
    return paid + RESOURCE_WORTH * (gained(before.credits, after.credits, HOARD) +
                                    gained(before.energy, after.energy, HOARD));
}

}  // namespace hackmatrix
