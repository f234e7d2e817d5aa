// The scripted player (`agents/scripted`), on what a record shows (`game/foresight/seen.py`).
//
// Every sum adds in the order of the Python player, so that both choose the same actions.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstring>

#include "movement.hpp"
#include "programs.hpp"
#include "record.hpp"

namespace hackmatrix::scripted {

// `agents/scripted/weights.py`, field by field.
struct Weights {
    double hp1, hp2, hp3, credit, energy, enough, siphon, attack, calm, show, fade;
    double enemy, enemy_hp, transmission, landing, spawn, crowd;
    double fire, close, near, open, ghost, ghost2, way, far, fetch, question, leave, left;
    double program, deep;
    double programs[NUM_PROGRAMS];
};
constexpr int NUM_WEIGHTS = sizeof(Weights) / sizeof(double);

// An enemy that the player sees, or foresees.
struct Foe {
    int8_t kind, cell;
    int hp;
    bool stunned;

    bool operator==(const Foe& other) const {
        return kind == other.kind && cell == other.cell && hp == other.hp &&
               stunned == other.stunned;
    }
};

// The foe that stands for an enemy of unknown kind.
constexpr Foe unknown_foe(int cell) {
    return {GLITCH, static_cast<int8_t>(cell), ENEMY_HP[GLITCH], false};
}

constexpr int MAX_FOES = (MAX_SEEN + 1) * CELLS;  // those seen, and the transmissions that land

// The board as the player sees it, or would after an action.
struct View {
    int cell, hp, credits, energy, siphons, attack, stage, atk_uses, pending;
    uint32_t owned;
    bool show, calm, step;
    int exit;
    CellSet blocks, data_siphons, siphoned;
    CellSet unsiphoned, programs, questions;  // blocks not siphoned; the programs, the questions
    uint8_t amounts[2][CELLS];                // credits and energy of cells that are not siphoned
    uint8_t value[CELLS], spawns[CELLS];      // of blocks not siphoned
    CellSet transmissions, landing, last_seen;
    int count;
    Foe foes[MAX_FOES];

    Foe* end() { return foes + count; }
    const Foe* begin() const { return foes; }
    const Foe* end() const { return foes + count; }

    CellSet pieces() const {
        CellSet cells = transmissions;
        for (const Foe& foe : *this) cells |= of(foe.cell);
        return cells;
    }

    explicit View(const uint8_t* bytes);
    View(const View& other) { *this = other; }
    View& operator=(const View& other) {  // foes beyond the count mean nothing
        size_t used = offsetof(View, foes) + sizeof(Foe) * other.count;
        std::memcpy(static_cast<void*>(this), &other, used);
        return *this;
    }
};

inline View::View(const uint8_t* bytes) {
    Record record{bytes};
    std::memset(static_cast<void*>(this), 0, offsetof(View, foes));
    cell = record.byte(NumberAt::cell);
    hp = record.byte(NumberAt::hp);
    credits = record.number(NumberAt::credits);
    energy = record.number(NumberAt::energy);
    siphons = record.number(NumberAt::siphons);
    attack = record.number(NumberAt::attack);
    stage = record.byte(NumberAt::stage);
    atk_uses = record.byte(NumberAt::atk_uses);
    pending = record.number(NumberAt::pending);
    owned = record.owned();
    int flags = record.byte(NumberAt::flags);
    show = flags & 1;
    calm = flags & 2;
    step = flags & 4;
    for (int c = 0; c < CELLS; c++) {
        int enemy = record.plane(ENEMY_PLANE, c), coming = record.plane(TRANSMISSION_PLANE, c);
        int content = record.plane(CELL_PLANE, c), resource = record.plane(RESOURCE_PLANE, c);
        Foe foe = unknown_foe(c);
        if (enemy & 7) {
            foe.kind = (enemy & 7) - 1;
            foe.hp = enemy >> 3 & 3;
            foe.stunned = enemy >> 5 & 1;
        }
        for (int seen = content >> 6; seen > 0; seen--) foes[count++] = foe;
        if (coming & 1) {
            transmissions |= of(c);
            if ((coming >> 1 & 7) <= 1) landing |= of(c);
        }
        if (enemy & 128) last_seen |= of(c);
        bool is_siphoned = content & 4;
        if (is_siphoned) siphoned |= of(c);
        if (int block = content & 3) {
            blocks |= of(c);
            if (is_siphoned) continue;
            unsiphoned |= of(c);
            if (block == PROGRAM) programs |= of(c);
            if (block == QUESTION) questions |= of(c);
            value[c] = block == QUESTION ? 0 : record.plane(VALUE_PLANE, c);
            spawns[c] = block == QUESTION ? 0 : record.plane(SPAWN_PLANE, c);
            continue;
        }
        if (content & 16)
            data_siphons |= of(c);
        else if (content & 32)
            exit = c;
        if (is_siphoned) continue;
        amounts[0][c] = resource & 3;
        amounts[1][c] = resource >> 2 & 3;
    }
}

// --- `foresight/actions.py` ---

inline bool can_go(const View& seen, int direction) {
    int to = NEIGHBOUR[seen.cell][direction];
    if (to == NOWHERE) return false;
    if (!has(seen.blocks, to)) return true;
    for (const Foe& foe : seen)
        if (foe.cell == to) return true;
    return false;
}

// Damages the foes for which `is_struck` holds; returns whether there was any.
template <class IsStruck>
bool strike(View& seen, IsStruck is_struck, int amount) {
    bool anyone = false;
    Foe* to = seen.foes;
    for (Foe foe : seen) {
        if (is_struck(foe)) {
            anyone = true;
            foe.hp -= amount;
            foe.stunned = true;
            if (foe.hp <= 0) continue;
        }
        *to++ = foe;
    }
    seen.count = to - seen.foes;
    return anyone;
}

inline void take_transmissions(View& seen, CellSet cells) {
    seen.transmissions &= ~cells;
    seen.landing &= ~cells;
}

inline void go(View& seen, int direction) {
    CellSet pieces = seen.pieces();
    CellSet struck = up_to_first(pieces | seen.blocks, seen.cell, direction) & pieces;
    if (!struck) {
        seen.cell = NEIGHBOUR[seen.cell][direction];
        if (has(seen.data_siphons, seen.cell)) seen.siphons++;
        seen.data_siphons &= ~of(seen.cell);
    } else if (struck & seen.transmissions) {
        take_transmissions(seen, struck);
    } else {
        bool found = false;
        auto is_first = [&](const Foe& foe) { return !found && (found = has(struck, foe.cell)); };
        strike(seen, is_first, seen.attack);
    }
}

inline void siphon(View& seen) {
    for (int c : each(CROSS[seen.cell])) {
        seen.credits += seen.amounts[0][c];
        seen.energy += seen.amounts[1][c];
        seen.amounts[0][c] = seen.amounts[1][c] = 0;
        if (has(seen.unsiphoned, c)) seen.pending += seen.spawns[c];
        if (has(seen.programs, c)) seen.owned |= 1u << seen.value[c];
    }
    CellSet cross = CROSS[seen.cell];
    seen.siphoned |= cross;
    seen.unsiphoned &= ~cross;
    seen.programs &= ~cross;
    seen.questions &= ~cross;
    seen.siphons--;
}

// --- `foresight/programs.py` ---

inline bool d_bom(View& seen) {
    const Foe* nearest = nullptr;
    for (const Foe& foe : seen)
        if (foe.kind == DAEMON &&
            (!nearest || manhattan(foe.cell, seen.cell) < manhattan(nearest->cell, seen.cell)))
            nearest = &foe;
    if (!nearest) return false;
    CellSet around = AROUND[nearest->cell];
    Foe* gone = std::find(seen.foes, seen.end(), *nearest);
    std::copy(gone + 1, seen.end(), gone);
    seen.count--;
    strike(seen, [=](const Foe& foe) { return has(around, foe.cell); }, 1);
    return true;
}

inline bool crash(View& seen) {
    CellSet around = AROUND[seen.cell];
    int before = seen.count;
    strike(seen, [=](const Foe& foe) { return has(around, foe.cell); }, 1 << 20);
    if (seen.count == before && !(around & (seen.blocks | seen.transmissions))) return false;
    seen.blocks &= ~around;
    seen.unsiphoned &= ~around;
    seen.programs &= ~around;
    seen.questions &= ~around;
    take_transmissions(seen, around);
    return true;
}

inline bool shift(View& seen, bool away) {
    CellSet taken = 0;
    for (int i = 0; i < seen.count; i++) {
        int goal = shift_goal(seen.cell, seen.foes[i].cell, away);
        if (goal == NOWHERE || has(taken, goal)) continue;
        taken |= of(goal);
        seen.foes[i].cell = goal;
    }
    return seen.count > 0;
}

// Pays for a program and runs it; returns false if it can't run, or would change nothing.
inline bool run(View& seen, int program) {
    const Program& cost = PROGRAMS[program];
    if (!(seen.owned >> program & 1) || seen.credits < cost.credits || seen.energy < cost.energy)
        return false;
    seen.credits -= cost.credits;
    seen.energy -= cost.energy;
    auto on = [&](CellSet cells) {
        return strike(seen, [=](const Foe& foe) { return has(cells, foe.cell); }, seen.attack);
    };
    auto turn_on = [](bool& flag) { return !flag && (flag = true); };
    switch (program) {
        case PUSH: return shift(seen, true);
        case PULL: return shift(seen, false);
        case CRASH: return crash(seen);
        case WAIT: return true;
        case DEBUG: return on(seen.blocks);
        case ROW: return on(BOARD.row[row(seen.cell)]);
        case COL: return on(BOARD.col[col(seen.cell)]);
        case STEP: return turn_on(seen.step);
        case SIPH_PLUS: seen.siphons++; return true;
        case EXCH: seen.energy += EXCH_ENERGY; return true;
        case SHOW: return turn_on(seen.show);
        case RESET: return seen.hp < PLAYER_HP && (seen.hp = PLAYER_HP);
        case CALM: return turn_on(seen.calm);
        case D_BOM: return d_bom(seen);
        case DELAY: seen.landing = 0; return seen.transmissions != 0;
        case ANTI_V: return strike(seen, [](const Foe& foe) { return foe.kind == VIRUS; }, 1);
        case ATK_PLUS: seen.attack++; return seen.atk_uses++ < MAX_ATK_USES;
        case HACK: return on(seen.siphoned);
    }
    return false;
}

// --- `foresight/enemy_turn.py` ---

// The first step of a shortest path, as `first_step` of `foresight/cell_sets.py` finds it.
inline int foreseen_step(int cell, int goal, CellSet free) {
    CellSet ways = NEIGHBOURS[cell] & free, reached = of(goal), frontier = reached;
    while (ways && frontier) {
        frontier = spread(frontier) & free & ~reached;
        if (frontier & ways)
            for (int to : NEIGHBOUR[cell])
                if (to != NOWHERE && has(frontier & ways, to)) return to;
        reached |= frontier;
    }
    return NOWHERE;
}

inline int foreseen_cell(const View& seen, int place) {
    const Foe& foe = seen.foes[place];
    CellSet occupied = seen.transmissions;
    for (int other = 0; other < seen.count; other++)
        if (other != place) occupied |= of(seen.foes[other].cell);
    CellSet open = foe.kind == GLITCH ? ALL_CELLS : ALL_CELLS & ~seen.blocks;
    CellSet free = open & ~occupied;
    int step = foreseen_step(foe.cell, seen.cell, free);
    if (step != NOWHERE) return step;
    step = foreseen_step(foe.cell, seen.cell, open);
    if (step != NOWHERE && has(free, step)) return step;
    int nearest = NOWHERE;
    for (int to : NEIGHBOUR[foe.cell])
        if (to != NOWHERE && has(free, to) &&
            (nearest == NOWHERE || manhattan(to, seen.cell) < manhattan(nearest, seen.cell)))
            nearest = to;
    return nearest == NOWHERE ? foe.cell : nearest;
}

inline void enemy_turn(View& seen) {
    if (seen.step) {
        seen.step = false;
        return;
    }
    bool acts[MAX_FOES];
    for (int i = 0; i < seen.count; i++) acts[i] = !seen.foes[i].stunned;
    int hits = 0;
    for (int sub_step = 0; sub_step < MOST_STEPS; sub_step++)
        for (int i = 0; i < seen.count; i++) {
            if (!acts[i]) continue;
            acts[i] = false;
            Foe& foe = seen.foes[i];
            if (has(NEIGHBOURS[seen.cell], foe.cell)) {
                hits++;
                continue;
            }
            foe.cell = foreseen_cell(seen, i);
            acts[i] = STEPS_PER_TURN[foe.kind] > sub_step + 1;
        }
    for (int i = 0; i < seen.count; i++) seen.foes[i].stunned = false;
    seen.hp = std::max(seen.hp - hits, 0);
    for (int c : each(seen.landing)) seen.foes[seen.count++] = unknown_foe(c);
    seen.transmissions &= ~seen.landing;
    seen.landing = seen.transmissions;
}

// --- `agents/scripted/values.py` ---

constexpr double LESS_EACH = 0.4;

inline double future(int stage, const Weights& w) {
    return 1.0 - w.fade * (stage - 1) / (LAST_STAGE - 1);
}
inline double next_one(int held, double enough) { return 1 / (1 + held / enough); }
inline double hoard(int held, double enough) { return enough * std::log1p(held / enough); }

inline double hp_worth(int hp, const Weights& w) {
    return hp == 0 ? 0.0 : hp == 1 ? w.hp1 : hp == 2 ? w.hp1 + w.hp2 : w.hp1 + w.hp2 + w.hp3;
}

inline double holdings(const View& seen, const Weights& w) {
    int transmissions = size(seen.transmissions);
    int crowd = seen.count + transmissions + seen.pending;
    double programs = 0.0, enemies = 0.0;
    for (int program : each(seen.owned)) programs += w.programs[program];
    for (const Foe& foe : seen) enemies += w.enemy + w.enemy_hp * foe.hp;
    return hp_worth(seen.hp, w) + w.credit * hoard(seen.credits, w.enough) +
           w.energy * hoard(seen.energy, w.enough) + w.siphon * seen.siphons +
           w.attack * (1 - std::pow(LESS_EACH, seen.attack - 1)) + w.calm * seen.calm +
           w.show * seen.show + programs * future(seen.stage, w) - enemies -
           w.transmission * transmissions - w.landing * size(seen.landing) -
           w.spawn * seen.pending - w.crowd * crowd * crowd;
}

inline double standing(const View& seen, const Weights& w) {
    CellSet beside = NEIGHBOURS[seen.cell], two_away = spread(beside) & ~beside;
    double worth = 0.0;
    if (CellSet pieces = seen.pieces()) {
        int lines = 0;
        for (int d = 0; d < NUM_DIRECTIONS; d++)
            lines += (up_to_first(pieces | seen.blocks, seen.cell, d) & pieces) != 0;
        worth += w.fire * lines;
        worth -= w.close * size(beside & pieces);
        worth -= w.near * size(two_away & pieces);
        worth -= w.open * size(beside & ~seen.blocks);
    }
    if (seen.last_seen & beside) worth -= w.ghost;
    if (seen.last_seen & two_away) worth -= w.ghost2;
    return worth;
}

// --- `agents/scripted/destinations.py` ---

constexpr int NO_PATH = CELLS;

struct Goal {
    double worth;
    int8_t away[CELLS];  // walking distance to it from each cell
};

inline void distances(int goal, CellSet free, int8_t* to) {
    std::fill(to, to + CELLS, NO_PATH);
    CellSet reached = of(goal), frontier = reached;
    for (int distance = 0; frontier; distance++) {
        for (int c : each(frontier)) to[c] = distance;
        frontier = spread(frontier) & free & ~reached;
        reached |= frontier;
    }
}

inline Goal best_goal(const View& seen, const Weights& w) {
    CellSet free = ALL_CELLS & ~seen.blocks, inside = free & ~of(seen.exit);
    int8_t away[CELLS];
    distances(seen.cell, inside, away);
    double best = 0.0;
    int cell = NOWHERE;
    auto consider = [&](double worth, int c) {
        worth = worth - w.far * away[c];
        if (away[c] == NO_PATH) return;
        if (cell == NOWHERE || worth > best || (worth == best && c > cell)) best = worth, cell = c;
    };
    for (int c : each(seen.data_siphons)) consider(w.fetch, c);
    if (seen.siphons) {
        double gains[CELLS], share = future(seen.stage, w);
        double credit = w.credit * next_one(seen.credits, w.enough);
        double energy = w.energy * next_one(seen.energy, w.enough);
        for (int c = 0; c < CELLS; c++) {
            gains[c] = credit * seen.amounts[0][c] + energy * seen.amounts[1][c];
            if (!has(seen.unsiphoned, c)) continue;
            gains[c] = -w.spawn * seen.spawns[c];
            if (has(seen.questions, c))
                gains[c] -= w.question;
            else if (has(seen.programs, c) && !(seen.owned >> seen.value[c] & 1))
                gains[c] += w.programs[seen.value[c]] * share;
        }
        for (int c : each(inside)) {
            double gain = gains[c];
            int crowd = has(seen.unsiphoned, c) ? seen.spawns[c] : 0;
            for (int to : NEIGHBOUR[c]) {
                if (to == NOWHERE) continue;
                gain += gains[to];
                if (has(seen.unsiphoned, to)) crowd += seen.spawns[to];
            }
            consider(gain - w.crowd * crowd * crowd - w.siphon, c);
        }
    }
    Goal goal{best, {}};
    if (cell == NOWHERE || best <= 0) goal.worth = 0.0, cell = seen.exit;
    distances(cell, cell == seen.exit ? free : inside, goal.away);
    return goal;
}

// --- `agents/scripted/lookahead.py` and `scripted.py` ---

constexpr int FIGHTS[] = {PUSH, PULL, CRASH, DEBUG, ROW, COL, STEP, D_BOM, DELAY, ANTI_V, HACK};
constexpr int INVESTMENTS[] = {SIPH_PLUS, EXCH, SHOW, RESET, CALM, ATK_PLUS};
constexpr int TURNS = 3;
constexpr double NO_MOVE = -1000.0;

// Calls `use(action, view)` for each action that ends the turn.
template <class Use>
void moves(const View& seen, Use use) {
    for (int d = 0; d < NUM_DIRECTIONS; d++) {
        if (!can_go(seen, d)) continue;
        View after = seen;
        go(after, d);
        use(d, after);
    }
    if (seen.siphons > 0) {
        View after = seen;
        siphon(after);
        use(SIPHON, after);
    }
    View after = seen;
    if (run(after, WAIT)) use(FIRST_PROGRAM + WAIT, after);
}

// The worth of having moved from a cell; `after` is changed.
inline double prospect(int from, View& after, const Goal& goal, const Weights& w, int turns) {
    if (after.cell == after.exit && after.exit != from) {
        after.hp = std::min(after.hp + 1, PLAYER_HP);
        int left = after.count + size(after.transmissions);
        return holdings(after, w) + w.leave - w.left * left - goal.worth;
    }
    double worth = holdings(after, w) - hp_worth(after.hp, w);
    int way = goal.away[after.cell];
    enemy_turn(after);
    worth = worth + hp_worth(after.hp, w);
    worth += standing(after, w) - w.way * way;
    if (turns == 1 || after.hp == 0 || after.count == 0) return worth;
    double best = NO_MOVE;
    bool any = false;
    moves(after, [&](int, View& later) {
        double next = prospect(after.cell, later, goal, w, turns - 1);
        if (!any || next > best) best = next;
        any = true;
    });
    return worth + w.deep * (best - worth);
}

struct Best {
    double worth;
    int action;
};

inline Best best_move(const View& seen, const Goal& goal, const Weights& w, uint32_t forbidden) {
    bool all = true;  // are forbidden, and so none is
    moves(seen, [&](int action, View&) { all &= forbidden >> action & 1; });
    Best best{NO_MOVE, 0};
    bool any = false;
    moves(seen, [&](int action, View& after) {
        if (!all && forbidden >> action & 1) return;
        double worth = prospect(seen.cell, after, goal, w, TURNS);
        if (!any || worth > best.worth || (worth == best.worth && action > best.action))
            best = {worth, action};
        any = true;
    });
    return best;
}

// Calls `use(action, view)` for each of some programs that can run.
template <class Programs, class Use>
void each_run(const View& seen, const Programs& programs, Use use) {
    for (int program : programs) {
        View after = seen;
        if (run(after, program)) use(FIRST_PROGRAM + program, after);
    }
}

// The action of the scripted player on a record; forbidden ones (bits) only if it knows no other.
inline int choose(const uint8_t* record, const Weights& w, uint32_t forbidden) {
    View seen(record);
    bool walled_in = true;
    moves(seen, [&](int, View&) { walled_in = false; });
    if (walled_in) {
        int first = NOWHERE;
        auto note = [&](int action, View&) { first = first == NOWHERE ? action : first; };
        each_run(seen, FIGHTS, note);
        each_run(seen, INVESTMENTS, note);
        return std::max(first, 0);
    }
    Goal goal = best_goal(seen, w);
    Best without = best_move(seen, goal, w, forbidden), best = without;
    double now = holdings(seen, w);
    auto consider = [&](double worth, int action) {
        if (worth > best.worth && !(forbidden >> action & 1)) best = {worth, action};
    };
    each_run(seen, INVESTMENTS, [&](int action, View& after) {
        consider(without.worth + holdings(after, w) - now - w.program, action);
    });
    if (seen.count > 0)
        each_run(seen, FIGHTS, [&](int action, View& after) {
            consider(best_move(after, goal, w, forbidden).worth - w.program, action);
        });
    return best.action;
}

}  // namespace hackmatrix::scripted
