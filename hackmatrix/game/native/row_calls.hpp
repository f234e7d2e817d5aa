// Custom calls of XLA on CPUs: sums of rows of weights by records, and the gradients of the weights.
#pragma once
#include "batch.hpp"
#include "calls.hpp"
#include "rows.hpp"
#include "xla.hpp"

namespace hackmatrix {

namespace ffi = xla::ffi;

// The arrays of a call about rows: records, the tables, then an array for the player's view and one
// for those of directions.
struct RowArrays {
    const uint8_t* records;
    size_t games;
    rows::Definition tables;
    const float* inputs[2];

    bool take(ffi::RemainingArgs& arguments) {
        constexpr size_t count = rows::DEFINITION_TABLES;
        if (arguments.size() != 1 + count + 2) return false;
        auto array = [&](size_t i) { return *arguments.get<ffi::AnyBuffer>(i); };
        auto bytes = array(0).dimensions();
        if (bytes.size() != 2 || bytes[1] != RECORD_SIZE) return false;
        records = array(0).typed_data<uint8_t>();
        games = bytes[0];
        rows::Table* table = rows::tables_of(tables);
        for (size_t i = 0; i < count; i++) {
            auto axes = array(1 + i).dimensions();
            if (axes.size() != 2) return false;
            table[i] = {array(1 + i).typed_data<int32_t>(), size_t(axes[0]), size_t(axes[1])};
        }
        if (!rows::fits(tables)) return false;
        for (size_t i : {0, 1}) inputs[i] = array(1 + count + i).typed_data<float>();
        return true;
    }
};

inline ffi::Error row_sums(ffi::RemainingArgs arguments, ffi::RemainingRets results, int32_t threads) {
    RowArrays shared;
    if (!shared.take(arguments) || results.size() != 2) return other_shapes();
    ffi::AnyBuffer player = **results.get<ffi::AnyBuffer>(0), others = **results.get<ffi::AnyBuffer>(1);
    size_t widths[] = {size_t(player.dimensions()[1]), size_t(others.dimensions()[2])};
    float* sums[] = {player.typed_data<float>(), others.typed_data<float>()};
    auto reader = rows::reader_of(shared.tables);
    for_each_block(shared.games, threads, [&, reader](size_t game, size_t end) {
        // Of its own: what other threads read must not lie beside what this one writes.
        const RowArrays arrays = shared;
        const size_t of_player = widths[0], of_direction = widths[1];
        float *to_player = sums[0] + game * of_player;
        float *to_direction = sums[1] + game * NUM_DIRECTIONS * of_direction;
        rows::Symbols symbols(*reader);
        std::vector<int32_t> rows(rows::MOST);
        for (; game < end; game++) {
            symbols.read(arrays.records + game * RECORD_SIZE);
            const int32_t* last = symbols.write_rows(0, rows.data());
            rows::sum_rows(arrays.inputs[0], of_player, rows.data(), last, to_player);
            to_player += of_player;
            for (int view = 1; view < rows::VIEWS; view++) {
                last = symbols.write_rows(view, rows.data());
                rows::sum_rows(arrays.inputs[1], of_direction, rows.data(), last, to_direction);
                to_direction += of_direction;
            }
        }
    });
    return ffi::Error::Success();
}

// The thread that adds to a row of weights. Rows of a group lie side by side, and make whole lines of
// the cache: two threads that write to one take many times as long.
inline uint32_t owner_of(uint32_t row, uint32_t threads) {
    constexpr uint32_t group = 4, odd = 40503;
    return uint16_t(row / group * odd) * threads >> 16;
}

// The gradient of weights of which `row_sums` made sums, from that of the sums. Threads share the
// rows, so that a weight's parts are added in the order of games.
inline ffi::Error row_gradients(ffi::RemainingArgs arguments, ffi::RemainingRets results, int32_t threads) {
    RowArrays shared;
    if (!shared.take(arguments) || results.size() != 2) return other_shapes();
    constexpr size_t block = 64;
    // By block of games, view and owner; and how many of them are of a game.
    std::vector<std::vector<int32_t>> rows((shared.games + block - 1) / block * rows::VIEWS * threads);
    std::vector<uint16_t> counts(shared.games * rows::VIEWS * threads);
    auto reader = rows::reader_of(shared.tables);
    for_each_block(shared.games, threads, [&, reader](size_t game, size_t end) {
        rows::Symbols symbols(*reader);
        std::vector<int32_t> written(rows::MOST);
        std::vector<int32_t>* to = &rows[game / block * rows::VIEWS * threads];
        for (; game < end; game++) {
            symbols.read(shared.records + game * RECORD_SIZE);
            for (int view = 0; view < rows::VIEWS; view++) {
                const int32_t* last = symbols.write_rows(view, written.data());
                uint16_t* count = &counts[(game * rows::VIEWS + view) * threads];
                for (const int32_t* row = written.data(); row < last; row++) {
                    uint32_t owner = owner_of(*row, threads);
                    to[view * threads + owner].push_back(*row);
                    count[owner]++;
                }
            }
        }
    });
    auto add = [&](uint32_t owner) {
        for (size_t turned : {0, 1}) {
            ffi::AnyBuffer result = **results.get<ffi::AnyBuffer>(turned);
            const size_t width = result.dimensions()[1], games = shared.games;
            float* to = result.typed_data<float>();
            for (size_t row = 0; row < size_t(result.dimensions()[0]); row++)
                if (owner_of(row, threads) == owner) std::fill_n(to + row * width, width, 0.0f);
            for (int view = turned; view < (turned ? rows::VIEWS : 1); view++) {
                const int32_t* row = nullptr;
                for (size_t game = 0; game < games; game++) {
                    size_t at = (game / block * rows::VIEWS + view) * threads + owner;
                    if (game % block == 0) row = rows[at].data();
                    const size_t of_game = turned ? game * NUM_DIRECTIONS + view - 1 : game;
                    const float* gradient = shared.inputs[turned] + of_game * width;
                    const int32_t* end = row + counts[(game * rows::VIEWS + view) * threads + owner];
                    for (; row < end; row++) rows::add_to_row(to + *row * width, gradient, width);
                }
            }
        }
    };
    std::vector<std::thread> others;
    for (int owner = 1; owner < threads; owner++) others.emplace_back(add, owner);
    add(0);
    for (std::thread& other : others) other.join();
    return ffi::Error::Success();
}

}  // namespace hackmatrix
