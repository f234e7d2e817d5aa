// Sections 1 and 2: the pieces and the state of a game.
#pragma once
#include <algorithm>
#include <cstdint>

#include "board.hpp"
#include "dice.hpp"

namespace hackmatrix {

// The number, at most `LIMIT`.
constexpr int16_t saturate(int value) { return static_cast<int16_t>(std::min(value, LIMIT)); }

// The player; numbers saturate at 32,767.
struct Player {
    uint8_t cell, hp;
    int16_t credits, energy, siphons, attack, score;
};

// The board: contents as sets, numbers for each cell. `value` and `spawn` are 0 but on blocks.
struct Cells {
    CellSet blocks;     // blocks of all kinds: what blocks walking and lines of fire
    CellSet data;       // data blocks, in the open or inside question blocks
    CellSet questions;  // question blocks not siphoned yet
    CellSet siphons;    // data siphons to pick up
    CellSet siphoned;
    CellSet center;          // cells where the player stood when siphoning
    uint8_t credits[CELLS];  // 0..3
    uint8_t energy[CELLS];   // 0..3
    uint8_t value[CELLS];    // points 0..9 of data blocks, program 0..22 of the other blocks
    uint8_t spawn[CELLS];    // 0..99
};

// An enemy on the board.
struct Enemy {
    uint8_t type, cell;
    int8_t hp;         // 0 or less until the dead are removed
    uint8_t disabled;  // turns for which it may not act
    bool stunned, from_schedule, from_siphon;
    uint8_t last;  // where a cryptog was last seen
};

// A transmission: becomes an enemy after `turns` turns.
struct Transmission {
    int16_t turns;
    uint8_t cell, type;
    bool from_schedule, from_siphon;
};

// Pieces in order of appearance.
template <class Piece, int MOST>
struct List {
    uint8_t count;
    Piece pieces[MOST];

    constexpr Piece* begin() { return pieces; }
    constexpr Piece* end() { return pieces + count; }
    constexpr const Piece* begin() const { return pieces; }
    constexpr const Piece* end() const { return pieces + count; }
    constexpr Piece& operator[](int index) { return pieces[index]; }

    void append(const Piece& piece) { pieces[count++] = piece; }

    void assign(const List& other) {
        count = other.count;
        std::copy(other.begin(), other.end(), pieces);
    }

    // Removes the pieces of which a test holds; the others move up in the list.
    template <class Test>
    void remove_if(Test test) {
        int num_left = 0;
        for (Piece& piece : *this)
            if (!test(piece)) pieces[num_left++] = piece;
        count = num_left;
    }

    // The first piece on a cell, or null.
    Piece* on(int cell) {
        Piece* result = std::find_if(begin(), end(), [=](auto& piece) { return piece.cell == cell; });
        return result == end() ? nullptr : result;
    }

    // The cells of all pieces.
    constexpr CellSet cells() const {
        CellSet result = 0;
        for (const Piece& piece : *this) result |= of(piece.cell);
        return result;
    }
};

// The part of the state that UNDO saves and restores (section 8).
struct Position {
    Player player;
    uint32_t owned;                  // bit n is set if program n is owned
    uint8_t acquired[NUM_PROGRAMS];  // the owned programs in order of acquisition
    uint8_t atk_uses;                // uses of ATK+ in this stage
    int16_t turn;                    // enemy turns in this stage
    bool show, calm;
    Cells cells;
    List<Enemy, MAX_ENEMIES> enemies;
    List<Transmission, MAX_TRANSMISSIONS> transmissions;

    // Cells with an enemy or a transmission.
    CellSet occupied() const { return enemies.cells() | transmissions.cells(); }

    // Cells in the player's row or column.
    CellSet in_line() const { return BOARD.row[row(player.cell)] | BOARD.col[col(player.cell)]; }

    // Whether the player sees the enemy: cryptogs only in line or after SHOW.
    bool sees(const Enemy& enemy) const {
        return enemy.type != CRYPTOG || show || has(in_line(), enemy.cell);
    }

    // Enemies of one type.
    bool any_of_type(EnemyType enemy_type) const {
        return std::any_of(enemies.begin(), enemies.end(),
                           [=](const Enemy& enemy) { return enemy.type == enemy_type; });
    }

    CellSet unsiphoned_blocks() const { return cells.blocks & ~cells.siphoned; }
};

enum Ending : uint8_t { RUNNING, WON, DIED, INVALID_ACTION };

// The complete state of a game but for the saved positions, which lie apart (`undo.hpp`).
struct State : Position {
    Dice dice;
    int16_t interval;   // between scheduled spawns
    int16_t next_task;  // turn of the next one
    int16_t pending;    // spawns pending from siphoning
    uint8_t exit;
    uint8_t stage;         // 1..8
    bool step;             // STEP is on: the next enemy turn is skipped
    Ending over;           // how the game ended
    uint8_t saved;         // positions that UNDO can restore, 0..4
    uint8_t newest_saved;  // index of the newest among them
};

}  // namespace hackmatrix
