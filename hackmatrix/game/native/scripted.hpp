// The scripted player (`agents/scripted`), on what a record shows (`game/foresight/visible_state.py`).
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
    int8_t type, cell;
    int hp;
    bool stunned;

    bool operator==(const Foe& other) const {
        return type == other.type && cell == other.cell && hp == other.hp &&
               stunned == other.stunned;
    }
};

// The foe that stands for an enemy of unknown type.
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
    cell = record.byte(ScalarAt::cell);
    hp = record.byte(ScalarAt::hp);
    credits = record.scalar(ScalarAt::credits);
    energy = record.scalar(ScalarAt::energy);
    siphons = record.scalar(ScalarAt::siphons);
    attack = record.scalar(ScalarAt::attack);
    stage = record.byte(ScalarAt::stage);
    atk_uses = record.byte(ScalarAt::atk_uses);
    pending = record.scalar(ScalarAt::pending);
    owned = record.owned();
    int flags = record.byte(ScalarAt::flags);
    show = flags & 1;
    calm = flags & 2;
    step = flags & 4;
    for (int c = 0; c < CELLS; c++) {
        int enemy = record.plane(ENEMY_PLANE, c), coming = record.plane(TRANSMISSION_PLANE, c);
        int content = record.plane(CELL_PLANE, c), resource = record.plane(RESOURCE_PLANE, c);
        Foe foe = unknown_foe(c);
        if (enemy & 7) {
            foe.type = (enemy & 7) - 1;
            foe.hp = enemy >> 3 & 3;
            foe.stunned = enemy >> 5 & 1;
        }
        for (int i = content >> 6; i > 0; i--) foes[count++] = foe;
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

inline bool can_go(const View& visible, int direction) {
    int to = NEIGHBOUR[visible.cell][direction];
    if (to == NOWHERE) return false;
    if (!has(visible.blocks, to)) return true;
    for (const Foe& foe : visible)
        if (foe.cell == to) return true;
    return false;
}

// Damages the foes for which `is_struck` holds; returns whether there was any.
template <class IsStruck>
bool strike(View& visible, IsStruck is_struck, int amount) {
    bool anyone = false;
    Foe* to = visible.foes;
    for (Foe foe : visible) {
        if (is_struck(foe)) {
            anyone = true;
            foe.hp -= amount;
            foe.stunned = true;
            if (foe.hp <= 0) continue;
        }
        *to++ = foe;
    }
    visible.count = to - visible.foes;
    return anyone;
}

inline void take_transmissions(View& visible, CellSet cells) {
    visible.transmissions &= ~cells;
    visible.landing &= ~cells;
}

inline void go(View& visible, int direction) {
    CellSet pieces = visible.pieces();
    CellSet struck = up_to_first(pieces | visible.blocks, visible.cell, direction) & pieces;
    if (!struck) {
        visible.cell = NEIGHBOUR[visible.cell][direction];
        if (has(visible.data_siphons, visible.cell)) visible.siphons++;
        visible.data_siphons &= ~of(visible.cell);
    } else if (struck & visible.transmissions) {
        take_transmissions(visible, struck);
    } else {
        bool is_found = false;
        auto is_first = [&](const Foe& foe) { return !is_found && (is_found = has(struck, foe.cell)); };
        strike(visible, is_first, visible.attack);
    }
}

inline void siphon(View& visible) {
    for (int c : members(CROSS[visible.cell])) {
        visible.credits += visible.amounts[0][c];
        visible.energy += visible.amounts[1][c];
        visible.amounts[0][c] = visible.amounts[1][c] = 0;
        if (has(visible.unsiphoned, c)) visible.pending += visible.spawns[c];
        if (has(visible.programs, c)) visible.owned |= 1u << visible.value[c];
    }
    CellSet cross = CROSS[visible.cell];
    visible.siphoned |= cross;
    visible.unsiphoned &= ~cross;
    visible.programs &= ~cross;
    visible.questions &= ~cross;
    visible.siphons--;
}

// --- `foresight/programs.py` ---

inline bool d_bom(View& visible) {
    const Foe* nearest = nullptr;
    for (const Foe& foe : visible)
        if (foe.type == DAEMON &&
            (!nearest || manhattan(foe.cell, visible.cell) < manhattan(nearest->cell, visible.cell)))
            nearest = &foe;
    if (!nearest) return false;
    CellSet around = AROUND[nearest->cell];
    Foe* gone = std::find(visible.foes, visible.end(), *nearest);
    std::copy(gone + 1, visible.end(), gone);
    visible.count--;
    strike(visible, [=](const Foe& foe) { return has(around, foe.cell); }, 1);
    return true;
}

inline bool crash(View& visible) {
    CellSet around = AROUND[visible.cell];
    int before = visible.count;
    strike(visible, [=](const Foe& foe) { return has(around, foe.cell); }, 1 << 20);
    if (visible.count == before && !(around & (visible.blocks | visible.transmissions))) return false;
    visible.blocks &= ~around;
    visible.unsiphoned &= ~around;
    visible.programs &= ~around;
    visible.questions &= ~around;
    take_transmissions(visible, around);
    return true;
}

inline bool shift(View& visible, bool away) {
    CellSet occupied = 0;
    for (int i = 0; i < visible.count; i++) {
        int goal = shift_goal(visible.cell, visible.foes[i].cell, away);
        if (goal == NOWHERE || has(occupied, goal)) continue;
        occupied |= of(goal);
        visible.foes[i].cell = goal;
    }
    return visible.count > 0;
}

// Pays for a program and runs it; returns false if it can't run, or would change nothing.
inline bool run(View& visible, int program) {
    const Program& cost = PROGRAMS[program];
    if (!(visible.owned >> program & 1) || visible.credits < cost.credits || visible.energy < cost.energy)
        return false;
    visible.credits -= cost.credits;
    visible.energy -= cost.energy;
    auto on = [&](CellSet cells) {
        return strike(visible, [=](const Foe& foe) { return has(cells, foe.cell); }, visible.attack);
    };
    auto turn_on = [](bool& flag) { return !flag && (flag = true); };
    switch (program) {
        case PUSH: return shift(visible, true);
        case PULL: return shift(visible, false);
        case CRASH: return crash(visible);
        case WAIT: return true;
        case DEBUG: return on(visible.blocks);
        case ROW: return on(BOARD.row[row(visible.cell)]);
        case COL: return on(BOARD.col[col(visible.cell)]);
        case STEP: return turn_on(visible.step);
        case SIPH_PLUS: visible.siphons++; return true;
        case EXCH: visible.energy += EXCH_ENERGY; return true;
        case SHOW: return turn_on(visible.show);
        case RESET: return visible.hp < PLAYER_HP && (visible.hp = PLAYER_HP);
        case CALM: return turn_on(visible.calm);
        case D_BOM: return d_bom(visible);
        case DELAY: visible.landing = 0; return visible.transmissions != 0;
        case ANTI_V: return strike(visible, [](const Foe& foe) { return foe.type == VIRUS; }, 1);
        case ATK_PLUS: visible.attack++; return visible.atk_uses++ < MAX_ATK_USES;
        case HACK: return on(visible.siphoned);
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

inline int foreseen_cell(const View& visible, int index) {
    const Foe& foe = visible.foes[index];
    CellSet occupied = visible.transmissions;
    for (int other = 0; other < visible.count; other++)
        if (other != index) occupied |= of(visible.foes[other].cell);
    CellSet open = foe.type == GLITCH ? ALL_CELLS : ALL_CELLS & ~visible.blocks;
    CellSet free = open & ~occupied;
    int step = foreseen_step(foe.cell, visible.cell, free);
    if (step != NOWHERE) return step;
    step = foreseen_step(foe.cell, visible.cell, open);
    if (step != NOWHERE && has(free, step)) return step;
    int nearest = NOWHERE;
    for (int to : NEIGHBOUR[foe.cell])
        if (to != NOWHERE && has(free, to) &&
            (nearest == NOWHERE || manhattan(to, visible.cell) < manhattan(nearest, visible.cell)))
            nearest = to;
    return nearest == NOWHERE ? foe.cell : nearest;
}

inline void enemy_turn(View& visible) {
    if (visible.step) {
        visible.step = false;
        return;
    }
    bool acts[MAX_FOES];
    for (int i = 0; i < visible.count; i++) acts[i] = !visible.foes[i].stunned;
    int hits = 0;
    for (int sub_step = 0; sub_step < MOST_STEPS; sub_step++)
        for (int i = 0; i < visible.count; i++) {
            if (!acts[i]) continue;
            acts[i] = false;
            Foe& foe = visible.foes[i];
            if (has(NEIGHBOURS[visible.cell], foe.cell)) {
                hits++;
                continue;
            }
            foe.cell = foreseen_cell(visible, i);
            acts[i] = STEPS_PER_TURN[foe.type] > sub_step + 1;
        }
    for (int i = 0; i < visible.count; i++) visible.foes[i].stunned = false;
    visible.hp = std::max(visible.hp - hits, 0);
    for (int c : members(visible.landing)) visible.foes[visible.count++] = unknown_foe(c);
    visible.transmissions &= ~visible.landing;
    visible.landing = visible.transmissions;
}

// --- `agents/scripted/weights.py` ---

constexpr double LESS_EACH = 0.4;

inline double future(int stage, const Weights& w) {
    return 1.0 - w.fade * (stage - 1) / (LAST_STAGE - 1);
}
inline double next_one(int held, double enough) { return 1 / (1 + held / enough); }
inline double hoard(int held, double enough) { return enough * std::log1p(held / enough); }

inline double hp_worth(int hp, const Weights& w) {
    return hp == 0 ? 0.0 : hp == 1 ? w.hp1 : hp == 2 ? w.hp1 + w.hp2 : w.hp1 + w.hp2 + w.hp3;
}

inline double holdings(const View& visible, const Weights& w) {
    int transmissions = size(visible.transmissions);
    int crowd = visible.count + transmissions + visible.pending;
    double programs = 0.0, enemies = 0.0;
    for (int program : members(visible.owned)) programs += w.programs[program];
    for (const Foe& foe : visible) enemies += w.enemy + w.enemy_hp * foe.hp;
    return hp_worth(visible.hp, w) + w.credit * hoard(visible.credits, w.enough) +
           w.energy * hoard(visible.energy, w.enough) + w.siphon * visible.siphons +
           w.attack * (1 - std::pow(LESS_EACH, visible.attack - 1)) + w.calm * visible.calm +
           w.show * visible.show + programs * future(visible.stage, w) - enemies -
           w.transmission * transmissions - w.landing * size(visible.landing) -
           w.spawn * visible.pending - w.crowd * crowd * crowd;
}

inline double standing(const View& visible, const Weights& w) {
    CellSet beside = NEIGHBOURS[visible.cell], two_away = spread(beside) & ~beside;
    double worth = 0.0;
    if (CellSet pieces = visible.pieces()) {
        int lines = 0;
        for (int d = 0; d < NUM_DIRECTIONS; d++)
            lines += (up_to_first(pieces | visible.blocks, visible.cell, d) & pieces) != 0;
        worth += w.fire * lines;
        worth -= w.close * size(beside & pieces);
        worth -= w.near * size(two_away & pieces);
        worth -= w.open * size(beside & ~visible.blocks);
    }
    if (visible.last_seen & beside) worth -= w.ghost;
    if (visible.last_seen & two_away) worth -= w.ghost2;
    return worth;
}

// --- `agents/scripted/scripted.py` ---

constexpr int NO_PATH = CELLS;

struct Goal {
    double worth;
    int8_t away[CELLS];  // walking distance to it from each cell
};

inline void distances(int goal, CellSet free, int8_t* to) {
    std::fill(to, to + CELLS, NO_PATH);
    CellSet reached = of(goal), frontier = reached;
    for (int distance = 0; frontier; distance++) {
        for (int c : members(frontier)) to[c] = distance;
        frontier = spread(frontier) & free & ~reached;
        reached |= frontier;
    }
}

inline Goal best_goal(const View& visible, const Weights& w) {
    CellSet free = ALL_CELLS & ~visible.blocks, inside = free & ~of(visible.exit);
    int8_t away[CELLS];
    distances(visible.cell, inside, away);
    double best = 0.0;
    int cell = NOWHERE;
    auto consider = [&](double worth, int c) {
        worth = worth - w.far * away[c];
        if (away[c] == NO_PATH) return;
        if (cell == NOWHERE || worth > best || (worth == best && c > cell)) best = worth, cell = c;
    };
    for (int c : members(visible.data_siphons)) consider(w.fetch, c);
    if (visible.siphons) {
        double gains[CELLS], share = future(visible.stage, w);
        double credit = w.credit * next_one(visible.credits, w.enough);
        double energy = w.energy * next_one(visible.energy, w.enough);
        for (int c = 0; c < CELLS; c++) {
            gains[c] = credit * visible.amounts[0][c] + energy * visible.amounts[1][c];
            if (!has(visible.unsiphoned, c)) continue;
            gains[c] = -w.spawn * visible.spawns[c];
            if (has(visible.questions, c))
                gains[c] -= w.question;
            else if (has(visible.programs, c) && !(visible.owned >> visible.value[c] & 1))
                gains[c] += w.programs[visible.value[c]] * share;
        }
        for (int c : members(inside)) {
            double gain = gains[c];
            int crowd = has(visible.unsiphoned, c) ? visible.spawns[c] : 0;
            for (int to : NEIGHBOUR[c]) {
                if (to == NOWHERE) continue;
                gain += gains[to];
                if (has(visible.unsiphoned, to)) crowd += visible.spawns[to];
            }
            consider(gain - w.crowd * crowd * crowd - w.siphon, c);
        }
    }
    Goal goal{best, {}};
    if (cell == NOWHERE || best <= 0) goal.worth = 0.0, cell = visible.exit;
    distances(cell, cell == visible.exit ? free : inside, goal.away);
    return goal;
}

// --- `agents/scripted/scripted.py` and `scripted.py` ---

constexpr int FIGHTS[] = {PUSH, PULL, CRASH, DEBUG, ROW, COL, STEP, D_BOM, DELAY, ANTI_V, HACK};
constexpr int INVESTMENTS[] = {SIPH_PLUS, EXCH, SHOW, RESET, CALM, ATK_PLUS};
constexpr int TURNS = 3;
constexpr double NO_MOVE = -1000.0;

// Calls `use(action, view)` for each action that ends the turn.
template <class Use>
void moves(const View& visible, Use use) {
    for (int d = 0; d < NUM_DIRECTIONS; d++) {
        if (!can_go(visible, d)) continue;
        View after = visible;
        go(after, d);
        use(d, after);
    }
    if (visible.siphons > 0) {
        View after = visible;
        siphon(after);
        use(SIPHON, after);
    }
    View after = visible;
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

inline Best best_move(const View& visible, const Goal& goal, const Weights& w, uint32_t forbidden) {
    bool all = true;  // are forbidden, and so none is
    moves(visible, [&](int action, View&) { all &= forbidden >> action & 1; });
    Best best{NO_MOVE, 0};
    bool any = false;
    moves(visible, [&](int action, View& after) {
        if (!all && forbidden >> action & 1) return;
        double worth = prospect(visible.cell, after, goal, w, TURNS);
        if (!any || worth > best.worth || (worth == best.worth && action > best.action))
            best = {worth, action};
        any = true;
    });
    return best;
}

// Calls `use(action, view)` for each of some programs that can run.
template <class Programs, class Use>
void each_run(const View& visible, const Programs& programs, Use use) {
    for (int program : programs) {
        View after = visible;
        if (run(after, program)) use(FIRST_PROGRAM + program, after);
    }
}

// The action of the scripted player on a record; forbidden ones (bits) only if it knows no other.
inline int choose(const uint8_t* record, const Weights& w, uint32_t forbidden) {
    View visible(record);
    bool walled_in = true;
    moves(visible, [&](int, View&) { walled_in = false; });
    if (walled_in) {
        int first = NOWHERE;
        auto note = [&](int action, View&) { first = first == NOWHERE ? action : first; };
        each_run(visible, FIGHTS, note);
        each_run(visible, INVESTMENTS, note);
        return std::max(first, 0);
    }
    Goal goal = best_goal(visible, w);
    Best without = best_move(visible, goal, w, forbidden), best = without;
    double now = holdings(visible, w);
    auto consider = [&](double worth, int action) {
        if (worth > best.worth && !(forbidden >> action & 1)) best = {worth, action};
    };
    each_run(visible, INVESTMENTS, [&](int action, View& after) {
        consider(without.worth + holdings(after, w) - now - w.program, action);
    });
    if (visible.count > 0)
        each_run(visible, FIGHTS, [&](int action, View& after) {
            consider(best_move(after, goal, w, forbidden).worth - w.program, action);
        });
    return best.action;
}

}  // namespace hackmatrix::scripted
