// Many games at once on CPUs, shared by threads.
#pragma once
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "env_step.hpp"
#include "legality.hpp"

namespace hackmatrix {

// Does some work for blocks of n games, from one to the one before another, on several threads.
template <class Work>
void for_each_block(size_t games, int threads, Work work) {
    constexpr size_t block = 64;
    std::atomic<size_t> next{0};
    auto play = [&] {
        for (size_t start; (start = next.fetch_add(block)) < games;)
            work(start, std::min(start + block, games));
    };
    std::vector<std::thread> others;
    int needed = std::min(static_cast<int>(games / block), threads);
    for (int thread = 1; thread < needed; thread++) others.emplace_back(play);
    play();
    for (std::thread& other : others) other.join();
}

template <class Work>
void for_each_game(size_t games, int threads, Work work) {
    for_each_block(games, threads, [&](size_t i, size_t end) {
        for (; i < end; i++) work(i);
    });
}

constexpr const char *STATE = "a legal state", *OBSERVATION = "an observation";

// A part that is not legal in one of some games, by any thread; null if there is none.
using Fault = std::atomic<const char*>;

inline std::string text_of(const Fault& fault, const char* whole) {
    return std::string("not ") + whole + " of HackMatrix (" + fault.load() + ")";
}

// Works on each game but those in which a check names a part that is not legal.
template <class Check, class Work>
void for_each_legal(size_t games, int threads, Fault& fault, Check check, Work work) {
    for_each_game(games, threads, [&](size_t i) {
        if (const char* part = check(i))
            fault = part;
        else
            work(i);
    });
}

// Asks the memory for the parts of a position that are always needed.
inline void fetch(const Position& position) {
    constexpr size_t line = 64, common = 320;  // bytes: numbers, cells and the first enemies
    for (size_t at = 0; at < common; at += line)
        __builtin_prefetch(reinterpret_cast<const char*>(&position) + at, 1);
    __builtin_prefetch(&position.transmissions, 1);
}

// Takes an action in each game.
inline void step_games(const Games& games, const int32_t* actions, size_t count, int threads,
                       const Settings& settings, const Results& to) {
    for_each_block(count, threads, [&](size_t i, size_t end) {
        for (; i < end; i++) {
            // Games lie far apart: without asking ahead, waiting took a quarter of the time.
            if (i + 2 < end) {
                fetch(games.states[i + 2]);
                __builtin_prefetch(&games.states[i + 2].dice, 1);
                fetch(games.saved[i + 1].positions[next_saved(games.states[i + 1])]);
            }
            if (games.held && games.held[i])
                hold_game(games.states[i], to, i);
            else
                step_game(games, actions[i], settings, to, i);
        }
    });
}

}  // namespace hackmatrix
