// Games that look to the player exactly as given records (`game/foresight/jax_imagination.py`).
#pragma once
#include "movement.hpp"
#include "legality.hpp"

namespace hackmatrix {

constexpr int STRAYS = 2;  // steps from where a cryptog was last seen, if no cell on its way is hidden

// A record's planes as sets and numbers of cells, with nothing in question blocks.
struct Looks {
    Record record;
    CellSet transmissions = 0, exit = 0, last_seen = 0, blocks = 0;
    CellSet enemies[MAX_SEEN] = {};  // cells with at least one enemy in sight, two, three

    Looks(const uint8_t* bytes, Cells& cells) : record{bytes} {
        cells = {};
        for (int cell = 0; cell < CELLS; cell++) {
            int marks = record.plane(CELL_PLANE, cell), resource = record.plane(RESOURCE_PLANE, cell);
            auto mark = [=](CellSet& set, bool is_set) { set |= CellSet{is_set} << cell; };
            mark(cells.blocks, marks & 3);
            mark(cells.data, (marks & 3) == 1);
            mark(cells.questions, (marks & 3) == 3);
            mark(cells.siphoned, marks & 4);
            mark(cells.center, marks & 8);
            mark(cells.siphons, marks & 16);
            mark(exit, marks & 32);
            for (int i = 0; i < MAX_SEEN; i++) mark(enemies[i], marks >> 6 > i);
            mark(transmissions, record.plane(TRANSMISSION_PLANE, cell) & 1);
            mark(last_seen, record.plane(ENEMY_PLANE, cell) & 128);
            cells.credits[cell] = resource & 3;
            cells.energy[cell] = resource >> 2 & 3;
            cells.value[cell] = record.plane(VALUE_PLANE, cell) & 31;
            cells.spawn[cell] = record.plane(SPAWN_PLANE, cell) & 127;
        }
        blocks = cells.blocks;
    }
};

// The part of a record that no game shows, or null; its question blocks need programs to hold.
inline const char* imaginable(const uint8_t* bytes) {
    if (const char* part = record_fault(bytes)) return part;
    Cells cells;
    Looks looks(bytes, cells);
    uint32_t shown = 0;
    for (int cell : members(cells.blocks & ~cells.data & ~cells.questions))
        shown |= 1u << cells.value[cell];
    return size(shown) + size(cells.questions) > NUM_PROGRAMS ? "the cells" : nullptr;
}

// Fills question blocks, as `place_blocks` fills a block that it has drawn.
inline void fill_question_blocks(Cells& cells, const Dice& dice) {
    uint32_t absent = (1u << NUM_PROGRAMS) - 1;  // programs that are not on the board
    for (int cell : members(cells.blocks & ~cells.data & ~cells.questions))
        absent &= ~(1u << cells.value[cell]);
    int index = 0;
    for (int cell : members(cells.questions)) {
        bool is_data = dice.choose(BLOCK_IS_DATA, 2, index) == 0;
        int value = is_data ? 1 + dice.choose(BLOCK_POINTS, MAX_POINTS, index)
                            : nth(absent, dice.choose(BLOCK_PROGRAM, size(absent), index));
        if (is_data) cells.data |= of(cell);
        if (!is_data) absent &= ~(1u << value);
        cells.value[cell] = value;
        cells.spawn[cell] = is_data ? value : PROGRAMS[value].spawn;
        index++;
    }
}

// Lists the enemies in sight: by cells those of which one is there, then the second ones, then the
// third ones, which look like the first.
inline void list_enemies(const Looks& looks, Position& position) {
    for (CellSet cells : looks.enemies)
        for (int cell : members(cells)) {
            int byte = looks.record.plane(ENEMY_PLANE, cell), type_plus_one = byte & 7, hp = byte >> 3 & 3;
            if (position.enemies.count == MAX_ENEMIES) return;
            Enemy enemy{};
            enemy.type = (type_plus_one - (type_plus_one > 0)) & 3;
            enemy.cell = enemy.last = cell;
            enemy.hp = type_plus_one ? hp : hp | 2;
            enemy.stunned = byte & 32;
            enemy.from_siphon = byte & 64;
            position.enemies.append(enemy);
        }
}

// The cells from one on that an enemy alone passes out of the player's sight (section 5).
inline CellSet way_from(int cell, const Position& position) {
    int here = position.player.cell;
    CellSet way = of(cell);
    while (!has(CROSS[here], cell)) {
        cell = first_step(cell, here, position.cells.blocks);
        if (cell == NOWHERE || has(position.in_line(), cell)) break;
        way |= of(cell);
    }
    return way;
}

// Puts hidden cryptogs on their way from where they were last seen, else near it, else anywhere out
// of the player's row and column.
inline void hide_cryptogs(const Looks& looks, Position& position, const Dice& dice) {
    CellSet ground = ALL_CELLS & ~looks.blocks;
    CellSet free = ground & ~(looks.enemies[0] | looks.transmissions | position.in_line());
    int count = 0;
    for (int last : members(looks.last_seen)) {
        CellSet near = of(last), way = way_from(last, position);
        for (int i = 0; i < STRAYS; i++) near |= spread(near) & ground;
        CellSet options = free & way ? free & way : free & near ? free & near : free;
        int index = count++;
        if (!options || position.enemies.count == MAX_ENEMIES) continue;
        Enemy enemy{};
        enemy.type = CRYPTOG;
        enemy.hp = ENEMY_HP[CRYPTOG];
        enemy.cell = nth(options, dice.choose(SPAWN_CELL, size(options), index));
        enemy.last = last;
        free &= ~of(enemy.cell);
        position.enemies.append(enemy);
    }
}

// Lists the transmissions; unless SHOW is on, any of the four types comes with equal chance.
inline void list_transmissions(const Looks& looks, Position& position, const Dice& dice) {
    constexpr int half = CELLS / 2;  // each word drawn has a bit of so many types
    uint32_t drawn_bits[2][2];
    for (int bit = 0; bit < 2; bit++)
        for (int part = 0; part < 2; part++)
            drawn_bits[bit][part] = draw(dice.stream, dice.episode, dice.clock, SPAWN_TYPE, 2 * bit + part);
    for (int cell : members(looks.transmissions)) {
        int byte = looks.record.plane(TRANSMISSION_PLANE, cell), slot = position.transmissions.count;
        auto drawn = [&](int bit) { return drawn_bits[bit][slot / half] >> slot % half & 1; };
        int type = position.show ? ((byte >> 4 & 7) - 1) & 3 : drawn(0) | drawn(1) << 1;
        position.transmissions.append({static_cast<int16_t>(byte >> 1 & 7),
                                       static_cast<uint8_t>(cell), static_cast<uint8_t>(type),
                                       false, false});
    }
}

// A position that looks as a record, and the set with the exit.
inline CellSet imagine_position(const uint8_t* bytes, const Dice& dice, Position& position) {
    position = {};
    Looks looks(bytes, position.cells);
    const Record& record = looks.record;
    auto scalar = [&](int offset) { return static_cast<int16_t>(record.scalar(offset)); };
    position.player = {static_cast<uint8_t>(record.byte(ScalarAt::cell)),
                       static_cast<uint8_t>(record.byte(ScalarAt::hp)),
                       scalar(ScalarAt::credits),
                       scalar(ScalarAt::energy),
                       scalar(ScalarAt::siphons),
                       scalar(ScalarAt::attack),
                       scalar(ScalarAt::score)};
    position.owned = record.owned();
    int acquired = 0;
    for (int program : members(position.owned)) position.acquired[acquired++] = program;
    position.turn = scalar(ScalarAt::turn);
    int flags = record.byte(ScalarAt::flags);
    position.show = flags & 1;
    position.calm = flags & 2;
    position.atk_uses = record.byte(ScalarAt::atk_uses);
    fill_question_blocks(position.cells, dice);
    list_enemies(looks, position);
    hide_cryptogs(looks, position, dice);
    list_transmissions(looks, position, dice);
    return looks.exit;
}

// A running game that looks as a record. The positions saved for UNDO look as `remembered`, four
// records of which the last `count` mean something. What the records leave open the dice decide:
// their clock should be 0, at which no action is ever taken. Returns what no game shows, or null.
inline const char* imagine(const uint8_t* bytes, const uint8_t* remembered, int count,
                           const Dice& dice, State& state, SavedPositions& saved) {
    state = {};
    if (count < 0 || count > MAX_SAVED_STATES) return "the number of positions for UNDO";
    for (int index = MAX_SAVED_STATES - count; index < MAX_SAVED_STATES; index++)
        if (const char* part = imaginable(remembered + index * RECORD_SIZE)) return part;
    if (const char* part = imaginable(bytes)) return part;
    CellSet exit = imagine_position(bytes, dice, state);
    Record record{bytes};
    state.dice = dice;
    state.exit = exit ? first(exit) : 0;
    state.stage = record.byte(ScalarAt::stage);
    state.interval = record.scalar(ScalarAt::interval);
    state.next_task = record.scalar(ScalarAt::next_task);
    state.pending = record.scalar(ScalarAt::pending);
    state.step = record.byte(ScalarAt::flags) & 4;
    state.over = RUNNING;
    state.saved = count;
    state.newest_saved = MAX_SAVED_STATES - 1;
    for (int index = MAX_SAVED_STATES - state.saved; index < MAX_SAVED_STATES; index++)
        imagine_position(remembered + index * RECORD_SIZE, dice, saved.positions[index]);
    return fault(state, saved);
}

}  // namespace hackmatrix
