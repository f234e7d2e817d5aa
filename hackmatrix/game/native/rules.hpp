// The game's names, numbers and tables; no logic. A test holds them equal to `hackmatrix/game/rules`.
#pragma once
#include <cstdint>
#include <iterator>

namespace hackmatrix {

// Section 1: the board. A cell is its flat index `row * 6 + col`.
constexpr int SIZE = 6, CELLS = SIZE * SIZE;
constexpr int CORNERS[] = {0, 5, 30, 35};
constexpr int LIMIT = 32767;  // maximum at which unbounded numbers saturate
constexpr int MAX_RESOURCE = 3, MAX_SPAWN = 99;
constexpr int NUM_DIRECTIONS = 4;
constexpr int ROWS[NUM_DIRECTIONS] = {1, -1, 0, 0};  // up, down, left, right: tried in this order
constexpr int COLS[NUM_DIRECTIONS] = {0, 0, -1, 1};
enum Content { EMPTY, DATA, PROGRAM, QUESTION, DATA_SIPHON, EXIT };

// Section 2: enemies.
enum EnemyType { VIRUS, DAEMON, GLITCH, CRYPTOG };
constexpr int ENEMY_TYPES = 4, MAX_ENEMIES = 32, MAX_TRANSMISSIONS = CELLS;
constexpr int MAX_DISABLED = 99;
constexpr int ENEMY_HP[ENEMY_TYPES] = {2, 3, 2, 2};
constexpr int STEPS_PER_TURN[ENEMY_TYPES] = {2, 1, 1, 1}, MOST_STEPS = 2;

// Section 3: actions.
constexpr int SIPHON = 4, FIRST_PROGRAM = 5;

// Section 8: programs.
enum ProgramId {
    PUSH, PULL, CRASH, WARP, POLY, WAIT, DEBUG, ROW, COL, UNDO, STEP, SIPH_PLUS, EXCH, SHOW, RESET,
    CALM, D_BOM, DELAY, ANTI_V, SCORE, REDUC, ATK_PLUS, HACK
};
struct Program {
    int credits, energy, spawn;
};
constexpr Program PROGRAMS[] = {
    {0, 2, 4}, {0, 2, 4}, {3, 2, 6}, {2, 2, 5}, {1, 1, 3}, {0, 1, 1}, {3, 0, 4}, {3, 1, 2},
    {3, 1, 2}, {1, 0, 3}, {0, 3, 4}, {5, 0, 7}, {4, 0, 3}, {2, 0, 2}, {0, 4, 2}, {2, 4, 6},
    {3, 0, 4}, {1, 2, 4}, {3, 0, 4}, {0, 5, 5}, {2, 1, 3}, {4, 4, 8}, {2, 2, 4},
};
constexpr int NUM_PROGRAMS = sizeof PROGRAMS / sizeof *PROGRAMS;
constexpr int NUM_ACTIONS = FIRST_PROGRAM + NUM_PROGRAMS;
constexpr int MAX_SAVED_STATES = 4, EXCH_ENERGY = 4, DELAY_TURNS = 3, MAX_ATK_USES = 2;

// Sections 6, 7, 9 and 10: stages.
constexpr int LAST_STAGE = 8, PLAYER_HP = 3;
constexpr int FIRST_INTERVAL = 12, STAGE_INTERVAL = 13, MIN_INTERVAL = 4, SIPHON_DELAY = 5;
constexpr int MIN_BLOCKS = 5, MAX_BLOCKS = 11, MAX_POINTS = 9, LAYOUT_TRIES = 100;
constexpr int QUESTION_CHANCES = 10;  // equal chances, of which the first is a question block
constexpr int AMOUNT_CHANCES[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3};
constexpr int START_BONUSES[][3] = {{10, 0, 0}, {0, 11, 0}, {0, 0, 1}};  // credits, energy, siphons

// Every random draw, and what its `index` counts (`rules/chance.py`).
enum Site {
    START_CORNER, START_BONUS, EXIT_CORNER, BLOCK_COUNT, BLOCK_CELL, BLOCK_IS_DATA,
    BLOCK_IS_QUESTION, BLOCK_POINTS, BLOCK_PROGRAM, RESOURCE_IS_CREDITS, RESOURCE_AMOUNT,
    SPAWN_CELL, SPAWN_TYPE, ENEMY_ORDER, POLY_TYPE, WARP_TARGET
};
constexpr int SCHEDULED_SPAWN = 0, FIRST_PENDING_SPAWN = 1, FIRST_STAGE_SPAWN = 0;
constexpr int LAYOUT_STRIDE = 16;

// Section 11: rewards, in units of 0.005.
constexpr float UNIT = 0.005f;
constexpr int NUM_PARTS = 15;
constexpr int STAGE_COMPLETION[LAST_STAGE] = {200, 400, 800, 1600, 3200, 6400, 12800, 20000};
constexpr int DEATH[LAST_STAGE] = {0, -100, -300, -700, -1500, -3100, -6300, -12700};
constexpr int STEP_PENALTY = -2, SCORE_GAIN = 100, KILL = 60, DATA_SIPHON_GAIN = 200, DISTANCE = 10;
constexpr int VICTORY = 100000, VICTORY_SCORE = 20000, RESOURCE_GAIN = 10, RESOURCE_HOLDING = 2;
constexpr int DAMAGE = -200, HP_RECOVERY = 200, SIPHON_QUALITY = -5, PROGRAM_WASTE = -60;
constexpr int SIPHON_DEATH = -2000;

// The reward `progress`.
constexpr float STAGE_PAID = 1.0f, WIN_PAID = 5.0f, DEATH_COST = 1.0f;
constexpr float HP_WORTH = 0.3f, SIPHON_WORTH = 0.15f, RESOURCE_WORTH = 0.03f;
constexpr int MAX_SIPHONS = 3, HOARD = 20;

// Section 12: the record. First bytes of its planes and numbers, and bits of the fields in a byte.
constexpr int MAX_TURNS = 4, MAX_SEEN = 3, MAX_DISTANCE = 10;
constexpr int ENEMY_PLANE = 0, TRANSMISSION_PLANE = 36, CELL_PLANE = 72, RESOURCE_PLANE = 108;
constexpr int VALUE_PLANE = 144, SPAWN_PLANE = 180, NUMBERS = 216, RECORD_SIZE = 244;

}  // namespace hackmatrix
