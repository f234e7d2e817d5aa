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
struct Seen : Record {
    int cell, hp, credits, energy, siphons, attack;
    uint32_t owned;
    Board board;
    CellSet kinds[ENEMY_TYPES], stunned;
    uint8_t enemy_hp[CELLS];

    // The cells whose byte of a plane has a bit.
    CellSet cells(int first, int bit) const {
        CellSet found = 0;
        for (int c = 0; c < CELLS; c++) found |= CellSet(plane(first, c) >> bit & 1) << c;
        return found;
    }

    explicit Seen(const uint8_t* record) : Record{record}, board{}, kinds{} {
        cell = byte(NumberAt::cell);
        hp = byte(NumberAt::hp);
        credits = number(NumberAt::credits);
        energy = number(NumberAt::energy);
        siphons = number(NumberAt::siphons);
        attack = number(NumberAt::attack);
        owned = Record::owned();
        for (int c = 0; c < CELLS; c++) {
            int enemy = plane(ENEMY_PLANE, c);
            if (enemy & 7) kinds[(enemy & 7) - 1] |= of(c);
            enemy_hp[c] = enemy >> 3 & 3;
        }
        stunned = cells(ENEMY_PLANE, 5);
        board.blocks = cells(CELL_PLANE, 0) | cells(CELL_PLANE, 1);
        board.enemies = kinds[VIRUS] | kinds[DAEMON] | kinds[GLITCH] | kinds[CRYPTOG];
        board.able = board.enemies & ~stunned;
        board.viruses = kinds[VIRUS] & ~stunned;
        board.transmissions = cells(TRANSMISSION_PLANE, 0);
    }

    // The enemies of some that so much damage kills.
    CellSet killed(CellSet struck, int damage) const {
        CellSet dead = 0;
        for (int c : each(struck))
            if (enemy_hp[c] <= damage) dead |= of(c);
        return dead;
    }
};

// Cells where an enemy may hit in the enemy turn after the coming one.
inline CellSet reached_later(const Seen& seen) {
    const Board& board = seen.board;
    CellSet open = board.open(), others = board.enemies & ~seen.kinds[VIRUS];
    CellSet viruses = board.viruses, walkers = others & board.able;
    CellSet glitches = seen.kinds[GLITCH] & board.able;
    for (int i = 0; i < 2; i++) viruses |= spread(viruses) & open;
    CellSet next_to = spread(viruses | seen.kinds[VIRUS]);
    next_to |= spread(next_to & open);
    walkers = others | (spread(walkers) & open);
    walkers |= spread(glitches) & ~(board.enemies | board.transmissions);
    return next_to | spread(walkers) | spread(board.transmissions);
}

// The groups about directions.
inline void of_directions(const Seen& seen, CellSet reached, Tactical& to) {
    const Board& board = seen.board;
    int fewest = MAX_HITS;
    for (int d = 0; d < NUM_DIRECTIONS; d++) {
        if (!board.goes(seen.cell, d)) continue;
        int ahead = NEIGHBOUR[seen.cell][d], standing = seen.cell;
        int target = board.target(seen.cell, d);
        Board after = board;
        to.go_valid[d] = 1;
        if (target == NOWHERE) {
            to.go_walks[d] = 1;
            to.go_siphon[d] = seen.plane(CELL_PLANE, ahead) >> 4 & 1;
            to.go_exit[d] = seen.plane(CELL_PLANE, ahead) >> 5 & 1;
            standing = ahead;
        } else if (has(board.transmissions, target)) {
            to.go_transmission[d] = 1;
            after.transmissions &= ~of(target);
        } else {
            CellSet dead = seen.killed(of(target), seen.attack);
            to.go_kills[d] = dead != 0;
            to.go_stuns[d] = dead == 0;
            to.go_virus[d] = has(seen.kinds[VIRUS], target);
            to.go_daemon[d] = has(seen.kinds[DAEMON], target);
            to.go_glitch[d] = has(seen.kinds[GLITCH], target);
            to.go_cryptog[d] = has(seen.kinds[CRYPTOG], target);
            to.go_target_hp[d] = seen.enemy_hp[target];
            to.go_target_acts[d] = !has(seen.stunned, target);
            after.strike(of(target), dead);
        }
        to.go_target_near[d] = target == ahead;
        int hits = after.hits(standing);
        to.go_hits[d] = std::min(hits, MAX_HITS);
        to.go_hit[d] = hits > 0;
        to.go_lethal[d] = hits >= seen.hp;
        to.go_open[d] = size(NEIGHBOURS[standing] & ~board.blocks);
        to.go_safe_cells[d] = size(CROSS[standing] & board.open() & ~reached);
        for (int side = 0; side < NUM_DIRECTIONS; side++) {
            CellSet line = up_to_first(board.blocks | board.enemies, standing, side);
            to.go_lines[d] += (line & board.enemies) != 0;
        }
        fewest = std::min(fewest, hits);
    }
    to.stay_hits = std::min(board.hits(seen.cell), MAX_HITS);
    to.fewest_hits = fewest;
}

// PUSH and PULL, as if no enemy were in another's way; where some meet, the fiercest counts.
inline Board shifted(const Seen& seen, bool away) {
    Board after = seen.board;
    after.enemies = after.able = after.viruses = 0;
    for (int cell : each(seen.board.enemies)) {
        int goal = shift_goal(seen.cell, cell, away), to = goal == NOWHERE ? cell : goal;
        after.enemies |= of(to);
        if (has(seen.board.able, cell)) after.able |= of(to);
        if (has(seen.board.viruses, cell)) after.viruses |= of(to);
    }
    return after;
}

// The daemon seen nearest to the player, the first by cell on a tie; empty if there is none.
inline CellSet nearest_seen_daemon(const Seen& seen) {
    int nearest = NOWHERE;
    for (int cell : each(seen.kinds[DAEMON]))
        if (nearest == NOWHERE || manhattan(cell, seen.cell) < manhattan(nearest, seen.cell))
            nearest = cell;
    return nearest == NOWHERE ? 0 : of(nearest);
}

// The board after a program that strikes or moves; what it strikes, and how many it destroys.
inline Board after_strike(const Seen& seen, int program, int& struck, int& killed) {
    Board after = seen.board;
    if (program == PUSH || program == PULL) {
        struck = size(after.enemies);
        killed = 0;
        return shifted(seen, program == PUSH);
    }
    CellSet hit = 0, dead = 0, around = AROUND[seen.cell], coming = 0;
    bool weak = program == D_BOM || program == ANTI_V;
    CellSet daemon = nearest_seen_daemon(seen);
    switch (program) {
        case CRASH: hit = around; break;
        case DEBUG: hit = after.blocks; break;
        case ROW: hit = BOARD.row[row(seen.cell)]; break;
        case COL: hit = BOARD.col[col(seen.cell)]; break;
        case D_BOM: hit = daemon ? AROUND[first(daemon)] : 0; break;
        case ANTI_V: hit = seen.kinds[VIRUS]; break;
        case HACK: hit = seen.cells(CELL_PLANE, 2);
    }
    hit &= after.enemies;
    dead = seen.killed(hit, weak ? 1 : seen.attack);
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
inline void of_programs(const Seen& seen, Tactical& to) {
    for (int program = 0; program < NUM_PROGRAMS; program++) {
        const Program& cost = PROGRAMS[program];
        to.owned[program] = seen.owned >> program & 1;
        to.affordable[program] = seen.credits >= cost.credits && seen.energy >= cost.energy;
        to.ready[program] = to.owned[program] && to.affordable[program];
    }
    for (int i = 0; i < NUM_STRIKES; i++) {
        if (!to.ready[STRIKES[i]]) continue;
        int struck, killed, fewest = MAX_HITS, here = seen.cell;
        Board after = after_strike(seen, STRIKES[i], struck, killed);
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
inline void of_window(const Seen& seen, CellSet reached, Tactical& to) {
    for (int i = 0; i < NEAR; i++) {
        int to_row = row(seen.cell) + WINDOW[i][0], to_col = col(seen.cell) + WINDOW[i][1];
        int cell = to_row * SIZE + to_col;
        bool inside = on_board(to_row, to_col);
        to.cell_blocked[i] = !inside || has(seen.board.blocks, cell);
        if (!inside) continue;
        to.cell_virus[i] = has(seen.kinds[VIRUS], cell);
        to.cell_daemon[i] = has(seen.kinds[DAEMON], cell);
        to.cell_glitch[i] = has(seen.kinds[GLITCH], cell);
        to.cell_cryptog[i] = has(seen.kinds[CRYPTOG], cell);
        to.cell_stunned[i] = has(seen.stunned, cell);
        to.cell_hp[i] = has(seen.board.enemies, cell) ? seen.enemy_hp[cell] : 0;
        to.cell_transmission[i] = has(seen.board.transmissions, cell);
        to.cell_hits[i] = std::min(seen.board.hits(cell), MAX_HITS);
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
            for (int cell : each(search.frontier)) at[cell] = steps;
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

inline Takings takings_of(const Seen& seen, int cell) {
    int content = seen.plane(CELL_PLANE, cell), resource = seen.plane(RESOURCE_PLANE, cell);
    Takings made{};
    if (content >> 2 & 1) return made;
    int block = content & 3, value = seen.plane(VALUE_PLANE, cell);
    if (block == EMPTY) {
        made.credits = resource & 3;
        made.energy = resource >> 2 & 3;
    } else if (block == QUESTION) {
        made.questions = 1;
    } else {
        made.spawns = std::min<int>(seen.plane(SPAWN_PLANE, cell), MAX_SPAWNS);
        made.programs = block == PROGRAM && !(seen.owned >> value & 1);
    }
    made.worth = CREDIT_WORTH * made.credits + ENERGY_WORTH * made.energy +
                 SPAWN_WORTH * made.spawns + QUESTION_WORTH * made.questions +
                 (made.programs ? PROGRAM_WORTH[value] : 0);
    return made;
}

// The groups about siphoning and ways, and the enemies by their distance.
inline void of_siphoning(const Seen& seen, Tactical& to) {
    CellSet blocks = seen.board.blocks, siphons = seen.cells(CELL_PLANE, 4);
    int here = seen.cell, best = 0, best_worth = NO_WORTH;
    Ways way(of(here), blocks), to_siphon(siphons, blocks);
    Takings takings[CELLS], own{}, all{};
    ROLLED for (int cell = 0; cell < CELLS; cell++) all.add(takings[cell] = takings_of(seen, cell));
    for (int cell : each(CROSS[here])) own.add(takings[cell]);
    for (int cell : each(ALL_CELLS & ~blocks)) {
        int worth = STEP_WORTH * way.at[cell];
        for (int part : each(CROSS[cell])) worth += takings[part].worth;
        if (way.at[cell] == FAR || worth <= best_worth) continue;
        best = cell;
        best_worth = worth;
    }
    Ways to_best(of(best), blocks);
    auto to_exit = [&](int cell) { return seen.plane(RESOURCE_PLANE, cell) >> 4; };
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
        for (int from : each(CROSS[cell])) least = std::min<int>(least, way.at[from]);
        to.program_near[seen.plane(VALUE_PLANE, cell)] = FAR - least;
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
    for (int cell : each(seen.board.enemies)) {
        int distance = way.at[cell];
        auto& ring = has(seen.kinds[VIRUS], cell) ? to.viruses_at : to.walkers_at;
        bool counts = 1 <= distance && distance <= RINGS;
        if (counts && ring[distance - 1] < MAX_HITS) ring[distance - 1]++;
    }
}

// The groups about pieces and numbers.
inline void of_numbers(const Seen& seen, Tactical& to) {
    auto count = [](CellSet cells) { return std::min(size(cells), MAX_COUNT); };
    for (int kind = 0; kind < ENEMY_TYPES; kind++) to.enemies[kind] = count(seen.kinds[kind]);
    to.stunned = count(seen.stunned);
    to.hidden = count(seen.cells(ENEMY_PLANE, 7));
    to.transmissions = count(seen.board.transmissions);
    to.empty_of_pieces = !(seen.board.enemies | seen.board.transmissions);
    int stage = seen.byte(NumberAt::stage), turn = seen.number(NumberAt::turn);
    for (int i = 0; i < PLAYER_HP; i++) to.hp[i] = seen.hp == i + 1;
    for (int i = 0; i < 3; i++) {
        to.siphons[i] = seen.siphons >= i + 1;
        to.attack[i] = seen.attack >= i + 2;
        to.flags[i] = seen.byte(NumberAt::flags) >> i & 1;
    }
    to.credits = std::min(seen.credits, 60);
    to.energy = std::min(seen.energy, 60);
    for (size_t i = 0; i < std::size(HOARDS); i++) {
        to.has_credits[i] = seen.credits >= HOARDS[i];
        to.has_energy[i] = seen.energy >= HOARDS[i];
    }
    for (int i = 0; i < LAST_STAGE; i++) to.stage[i] = stage == i + 1;
    to.turn = std::min(turn, 80);
    to.until_task = std::clamp(seen.number(NumberAt::next_task) - turn, -1, 24);
    to.interval = std::min(seen.number(NumberAt::interval), 24);
    to.pending = std::min(seen.number(NumberAt::pending), 18);
    to.saved = seen.byte(NumberAt::saved);
    to.atk_uses = seen.byte(NumberAt::atk_uses);
    to.line[row(seen.cell)] = 1;
    to.line[SIZE + col(seen.cell)] = 1;
}

// The integers of the layout `tactical`, of a compact record.
inline void tactical_numbers(const uint8_t* record, Tactical& made) {
    Seen seen(record);
    made = {};
    CellSet reached = reached_later(seen);
    of_directions(seen, reached, made);
    of_programs(seen, made);
    of_window(seen, reached, made);
    of_siphoning(seen, made);
    of_numbers(seen, made);
}

}  // namespace hackmatrix
