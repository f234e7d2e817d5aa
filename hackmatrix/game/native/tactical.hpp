// Section 12, continued: the layout `tactical`, from a compact record (`game/foresight`).
#pragma once
#include "movement.hpp"
#include "programs.hpp"
#include "record.hpp"

namespace hackmatrix {

constexpr int NEAR = std::size(WINDOW), NUM_STRIKES = std::size(STRIKES);
static_assert(sizeof(Tactical) == TACTICAL_SIZE);

// The pieces before the enemy turn, as they are or after an action.
struct Board {
    CellSet blocks, enemies;
    CellSet able;     // enemies that will act
    CellSet viruses;  // those of them that are viruses
    CellSet transmissions;

    // Cells that an enemy can cross.
    CellSet open() const { return ALL_CELLS & ~(blocks | enemies | transmissions); }

    // How many enemies hit a player on a cell: neighbours, and viruses two free steps away.
    int hits(int goal) const {
        CellSet near = NEIGHBOURS[goal];
        return size((near & able) | (spread(near & open()) & viruses & ~of(goal)));
    }

    // The cell of what an attack from a cell strikes, or `NOWHERE`.
    int target(int cell, int direction) const {
        CellSet pieces = enemies | transmissions;
        CellSet struck = up_to_first(pieces | blocks, cell, direction) & pieces;
        return struck ? first(struck) : NOWHERE;
    }

    // Whether a direction is a valid action on a cell.
    bool goes(int cell, int direction) const {
        int to = NEIGHBOUR[cell][direction];
        return to != NOWHERE && !has(blocks & ~enemies, to);
    }

    // Some enemies are struck, some of them dead, so that none of them acts.
    void strike(CellSet struck, CellSet dead) {
        enemies &= ~dead;
        able &= ~struck;
        viruses &= ~struck;
    }
};

// What the player sees.
struct VisibleState : Record {
    int cell, hp, credits, energy, siphons, attack;
    uint32_t owned;
    Board board;
    CellSet by_type[ENEMY_TYPES], stunned;
    uint8_t enemy_hp[CELLS];

    // The cells whose byte of a plane has a bit.
    CellSet cells(int first, int bit) const {
        CellSet result = 0;
        for (int c = 0; c < CELLS; c++) result |= CellSet(plane(first, c) >> bit & 1) << c;
        return result;
    }

    explicit VisibleState(const uint8_t* record) : Record{record}, board{}, by_type{} {
        cell = byte(ScalarAt::cell);
        hp = byte(ScalarAt::hp);
        credits = scalar(ScalarAt::credits);
        energy = scalar(ScalarAt::energy);
        siphons = scalar(ScalarAt::siphons);
        attack = scalar(ScalarAt::attack);
        owned = Record::owned();
        for (int c = 0; c < CELLS; c++) {
            int enemy = plane(ENEMY_PLANE, c);
            if (enemy & 7) by_type[(enemy & 7) - 1] |= of(c);
            enemy_hp[c] = enemy >> 3 & 3;
        }
        stunned = cells(ENEMY_PLANE, 5);
        board.blocks = cells(CELL_PLANE, 0) | cells(CELL_PLANE, 1);
        board.enemies = by_type[VIRUS] | by_type[DAEMON] | by_type[GLITCH] | by_type[CRYPTOG];
        board.able = board.enemies & ~stunned;
        board.viruses = by_type[VIRUS] & ~stunned;
        board.transmissions = cells(TRANSMISSION_PLANE, 0);
    }

    // The enemies of some that so much damage kills.
    CellSet killed(CellSet struck, int damage) const {
        CellSet dead = 0;
        for (int c : members(struck))
            if (enemy_hp[c] <= damage) dead |= of(c);
        return dead;
    }
};

// Cells where an enemy may hit in the enemy turn after the coming one.
inline CellSet reached_later(const VisibleState& visible) {
    const Board& board = visible.board;
    CellSet open = board.open(), others = board.enemies & ~visible.by_type[VIRUS];
    CellSet viruses = board.viruses, walkers = others & board.able;
    CellSet glitches = visible.by_type[GLITCH] & board.able;
    for (int i = 0; i < 2; i++) viruses |= spread(viruses) & open;
    CellSet next_to = spread(viruses | visible.by_type[VIRUS]);
    next_to |= spread(next_to & open);
    walkers = others | (spread(walkers) & open);
    walkers |= spread(glitches) & ~(board.enemies | board.transmissions);
    return next_to | spread(walkers) | spread(board.transmissions);
}

// The groups about directions.
inline void of_directions(const VisibleState& visible, CellSet reached, Tactical& to) {
    const Board& board = visible.board;
    int fewest = MAX_HITS;
    for (int d = 0; d < NUM_DIRECTIONS; d++) {
        if (!board.goes(visible.cell, d)) continue;
        int ahead = NEIGHBOUR[visible.cell][d], standing = visible.cell;
        int target = board.target(visible.cell, d);
        Board after = board;
        to.go_valid[d] = 1;
        if (target == NOWHERE) {
            to.go_walks[d] = 1;
            to.go_siphon[d] = visible.plane(CELL_PLANE, ahead) >> 4 & 1;
            to.go_exit[d] = visible.plane(CELL_PLANE, ahead) >> 5 & 1;
            standing = ahead;
        } else if (has(board.transmissions, target)) {
            to.go_transmission[d] = 1;
            after.transmissions &= ~of(target);
        } else {
            CellSet dead = visible.killed(of(target), visible.attack);
            to.go_kills[d] = dead != 0;
            to.go_stuns[d] = dead == 0;
            to.go_virus[d] = has(visible.by_type[VIRUS], target);
            to.go_daemon[d] = has(visible.by_type[DAEMON], target);
            to.go_glitch[d] = has(visible.by_type[GLITCH], target);
            to.go_cryptog[d] = has(visible.by_type[CRYPTOG], target);
            to.go_target_hp[d] = visible.enemy_hp[target];
            to.go_target_acts[d] = !has(visible.stunned, target);
            after.strike(of(target), dead);
        }
        to.go_target_near[d] = target == ahead;
        int hits = after.hits(standing);
        to.go_hits[d] = std::min(hits, MAX_HITS);
        to.go_hit[d] = hits > 0;
        to.go_lethal[d] = hits >= visible.hp;
        to.go_open[d] = size(NEIGHBOURS[standing] & ~board.blocks);
        to.go_safe_cells[d] = size(CROSS[standing] & board.open() & ~reached);
        for (int side = 0; side < NUM_DIRECTIONS; side++) {
            CellSet line = up_to_first(board.blocks | board.enemies, standing, side);
            to.go_lines[d] += (line & board.enemies) != 0;
        }
        fewest = std::min(fewest, hits);
    }
    to.stay_hits = std::min(board.hits(visible.cell), MAX_HITS);
    to.fewest_hits = fewest;
}

// PUSH and PULL, as if no enemy were in another's way; where some meet, the fiercest counts.
inline Board shifted(const VisibleState& visible, bool away) {
    Board after = visible.board;
    after.enemies = after.able = after.viruses = 0;
    for (int cell : members(visible.board.enemies)) {
        int goal = shift_goal(visible.cell, cell, away), to = goal == NOWHERE ? cell : goal;
        after.enemies |= of(to);
        if (has(visible.board.able, cell)) after.able |= of(to);
        if (has(visible.board.viruses, cell)) after.viruses |= of(to);
    }
    return after;
}

// The visible daemon nearest to the player, the first by cell on a tie; empty if there is none.
inline CellSet nearest_visible_daemon(const VisibleState& visible) {
    int nearest = NOWHERE;
    for (int cell : members(visible.by_type[DAEMON]))
        if (nearest == NOWHERE || manhattan(cell, visible.cell) < manhattan(nearest, visible.cell))
            nearest = cell;
    return nearest == NOWHERE ? 0 : of(nearest);
}

// The board after a program that strikes or moves; what it strikes, and how many it destroys.
inline Board after_strike(const VisibleState& visible, int program, int& struck, int& killed) {
    Board after = visible.board;
    if (program == PUSH || program == PULL) {
        struck = size(after.enemies);
        killed = 0;
        return shifted(visible, program == PUSH);
    }
    CellSet hit = 0, dead = 0, around = AROUND[visible.cell], coming = 0;
    bool weak = program == D_BOM || program == ANTI_V;
    CellSet daemon = nearest_visible_daemon(visible);
    switch (program) {
        case CRASH: hit = around; break;
        case DEBUG: hit = after.blocks; break;
        case ROW: hit = BOARD.row[row(visible.cell)]; break;
        case COL: hit = BOARD.col[col(visible.cell)]; break;
        case D_BOM: hit = daemon ? AROUND[first(daemon)] : 0; break;
        case ANTI_V: hit = visible.by_type[VIRUS]; break;
        case HACK: hit = visible.cells(CELL_PLANE, 2);
    }
    hit &= after.enemies;
    dead = visible.killed(hit, weak ? 1 : visible.attack);
    if (program == D_BOM) {
        hit |= daemon;
        dead |= daemon;
    }
    if (program == CRASH) {
        dead = hit;
        coming = after.transmissions & around;
        after.blocks &= ~around;
        after.transmissions &= ~around;
    }
    after.strike(hit, dead);
    struck = size(hit);
    killed = size(dead) + size(coming);
    return after;
}

// The groups about programs.
inline void of_programs(const VisibleState& visible, Tactical& to) {
    for (int program = 0; program < NUM_PROGRAMS; program++) {
        const Program& cost = PROGRAMS[program];
        to.owned[program] = visible.owned >> program & 1;
        to.affordable[program] = visible.credits >= cost.credits && visible.energy >= cost.energy;
        to.ready[program] = to.owned[program] && to.affordable[program];
    }
    for (int i = 0; i < NUM_STRIKES; i++) {
        if (!to.ready[STRIKES[i]]) continue;
        int struck, killed, fewest = MAX_HITS, here = visible.cell;
        Board after = after_strike(visible, STRIKES[i], struck, killed);
        if (!struck && !killed) continue;
        for (int d = 0; d < NUM_DIRECTIONS; d++)
            if (after.goes(here, d)) {
                bool stays = after.target(here, d) != NOWHERE;
                fewest = std::min(fewest, after.hits(stays ? here : NEIGHBOUR[here][d]));
            }
        to.struck[i] = std::min(struck, MAX_HITS);
        to.killed[i] = std::min(killed, MAX_HITS);
        to.hits_after[i] = std::min(after.hits(here), MAX_HITS);
        to.fewest_after[i] = fewest;
    }
}

// The groups about the cells around.
inline void of_window(const VisibleState& visible, CellSet reached, Tactical& to) {
    for (int i = 0; i < NEAR; i++) {
        int to_row = row(visible.cell) + WINDOW[i][0], to_col = col(visible.cell) + WINDOW[i][1];
        int cell = to_row * SIZE + to_col;
        bool inside = on_board(to_row, to_col);
        to.cell_blocked[i] = !inside || has(visible.board.blocks, cell);
        if (!inside) continue;
        to.cell_virus[i] = has(visible.by_type[VIRUS], cell);
        to.cell_daemon[i] = has(visible.by_type[DAEMON], cell);
        to.cell_glitch[i] = has(visible.by_type[GLITCH], cell);
        to.cell_cryptog[i] = has(visible.by_type[CRYPTOG], cell);
        to.cell_stunned[i] = has(visible.stunned, cell);
        to.cell_hp[i] = has(visible.board.enemies, cell) ? visible.enemy_hp[cell] : 0;
        to.cell_transmission[i] = has(visible.board.transmissions, cell);
        to.cell_hits[i] = std::min(visible.board.hits(cell), MAX_HITS);
        to.cell_reached[i] = has(reached, cell);
    }
}

// Steps from a set of cells over cells without block, at most `FAR`.
struct Ways {
    int8_t at[CELLS];

    Ways(CellSet start, CellSet blocks) {
        std::fill(at, at + CELLS, FAR);
        Search search(start, blocks);
        for (int steps = 0; steps < FAR && search.frontier; steps++, search.advance())
            for (int cell : members(search.frontier)) at[cell] = steps;
    }
};

// What siphoning takes from a cell, or from a cross.
struct Takings {
    int credits, energy, spawns, questions, programs, worth;

    void add(const Takings& other) {
        credits += other.credits;
        energy += other.energy;
        spawns += other.spawns;
        questions += other.questions;
        programs += other.programs;
        worth += other.worth;
    }
};

inline Takings takings_of(const VisibleState& visible, int cell) {
    int content = visible.plane(CELL_PLANE, cell), resource = visible.plane(RESOURCE_PLANE, cell);
    Takings gain{};
    if (content >> 2 & 1) return gain;
    int block = content & 3, value = visible.plane(VALUE_PLANE, cell);
    if (block == EMPTY) {
        gain.credits = resource & 3;
        gain.energy = resource >> 2 & 3;
    } else if (block == QUESTION) {
        gain.questions = 1;
    } else {
        gain.spawns = std::min<int>(visible.plane(SPAWN_PLANE, cell), MAX_SPAWNS);
        gain.programs = block == PROGRAM && !(visible.owned >> value & 1);
    }
    gain.worth = CREDIT_WORTH * gain.credits + ENERGY_WORTH * gain.energy +
                 SPAWN_WORTH * gain.spawns + QUESTION_WORTH * gain.questions +
                 (gain.programs ? PROGRAM_WORTH[value] : 0);
    return gain;
}

// The groups about siphoning and ways, and the enemies by their distance.
inline void of_siphoning(const VisibleState& visible, Tactical& to) {
    CellSet blocks = visible.board.blocks, siphons = visible.cells(CELL_PLANE, 4);
    int here = visible.cell, best = 0, best_worth = NO_WORTH;
    Ways way(of(here), blocks), to_siphon(siphons, blocks);
    Takings takings[CELLS], own{}, all{};
    ROLLED for (int cell = 0; cell < CELLS; cell++) all.add(takings[cell] = takings_of(visible, cell));
    for (int cell : members(CROSS[here])) own.add(takings[cell]);
    for (int cell : members(ALL_CELLS & ~blocks)) {
        int worth = STEP_WORTH * way.at[cell];
        for (int part : members(CROSS[cell])) worth += takings[part].worth;
        if (way.at[cell] == FAR || worth <= best_worth) continue;
        best = cell;
        best_worth = worth;
    }
    Ways to_best(of(best), blocks);
    auto to_exit = [&](int cell) { return visible.plane(RESOURCE_PLANE, cell) >> 4; };
    for (int d = 0; d < NUM_DIRECTIONS; d++) {
        int ahead = NEIGHBOUR[here][d];
        if (ahead == NOWHERE || has(blocks, ahead)) continue;
        auto nearer = [=](const Ways& ways) { return sign(ways.at[here] - ways.at[ahead]); };
        to.go_to_exit[d] = sign(to_exit(here) - to_exit(ahead));
        to.go_to_siphon[d] = nearer(to_siphon);
        to.go_to_best[d] = nearer(to_best);
    }
    for (int cell = CELLS - 1; cell >= 0; cell--) {
        if (!takings[cell].programs) continue;
        int least = FAR;
        for (int from : members(CROSS[cell])) least = std::min<int>(least, way.at[from]);
        to.program_near[visible.plane(VALUE_PLANE, cell)] = FAR - least;
    }
    auto halved = [](int worth) { return std::clamp(worth >> 1, -LARGEST_WORTH, LARGEST_WORTH); };
    to.here_credits = own.credits;
    to.here_energy = own.energy;
    to.here_spawns = own.spawns;
    to.here_questions = own.questions;
    to.here_programs = own.programs;
    to.here_worth = halved(own.worth);
    to.best_worth = halved(best_worth);
    to.best_distance = to_best.at[here];
    to.best_here = to_best.at[here] == 0;
    to.credits_left = all.credits;
    to.energy_left = all.energy;
    to.siphons_left = std::min(size(siphons), MAX_COUNT);
    to.siphon_distance = to_siphon.at[here];
    to.exit_distance = to_exit(here);
    for (int cell : members(visible.board.enemies)) {
        int distance = way.at[cell];
        auto& ring = has(visible.by_type[VIRUS], cell) ? to.viruses_at : to.walkers_at;
        bool counts = 1 <= distance && distance <= RINGS;
        if (counts && ring[distance - 1] < MAX_HITS) ring[distance - 1]++;
    }
}

// The groups about pieces and numbers.
inline void of_scalars(const VisibleState& visible, Tactical& to) {
    auto count = [](CellSet cells) { return std::min(size(cells), MAX_COUNT); };
    for (int type = 0; type < ENEMY_TYPES; type++) to.enemies[type] = count(visible.by_type[type]);
    to.stunned = count(visible.stunned);
    to.hidden = count(visible.cells(ENEMY_PLANE, 7));
    to.transmissions = count(visible.board.transmissions);
    to.empty_of_pieces = !(visible.board.enemies | visible.board.transmissions);
    int stage = visible.byte(ScalarAt::stage), turn = visible.scalar(ScalarAt::turn);
    for (int i = 0; i < PLAYER_HP; i++) to.hp[i] = visible.hp == i + 1;
    for (int i = 0; i < 3; i++) {
        to.siphons[i] = visible.siphons >= i + 1;
        to.attack[i] = visible.attack >= i + 2;
        to.flags[i] = visible.byte(ScalarAt::flags) >> i & 1;
    }
    to.credits = std::min(visible.credits, 60);
    to.energy = std::min(visible.energy, 60);
    for (size_t i = 0; i < std::size(HOARDS); i++) {
        to.has_credits[i] = visible.credits >= HOARDS[i];
        to.has_energy[i] = visible.energy >= HOARDS[i];
    }
    for (int i = 0; i < LAST_STAGE; i++) to.stage[i] = stage == i + 1;
    to.turn = std::min(turn, 80);
    to.until_task = std::clamp(visible.scalar(ScalarAt::next_task) - turn, -1, 24);
    to.interval = std::min(visible.scalar(ScalarAt::interval), 24);
    to.pending = std::min(visible.scalar(ScalarAt::pending), 18);
    to.saved = visible.byte(ScalarAt::saved);
    to.atk_uses = visible.byte(ScalarAt::atk_uses);
    to.line[row(visible.cell)] = 1;
    to.line[SIZE + col(visible.cell)] = 1;
}

// The integers of the layout `tactical`, of a compact record.
inline void tactical_numbers(const uint8_t* record, Tactical& out) {
    VisibleState visible(record);
    out = {};
    CellSet reached = reached_later(visible);
    of_directions(visible, reached, out);
    of_programs(visible, out);
    of_window(visible, reached, out);
    of_siphoning(visible, out);
    of_scalars(visible, out);
}

}  // namespace hackmatrix
