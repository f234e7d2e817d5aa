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
        auto* table = reinterpret_cast<rows::Table*>(&tables);
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
    RowArrays arrays;
    if (!arrays.take(arguments) || results.size() != 2) return other_shapes();
    ffi::AnyBuffer player = **results.get<ffi::AnyBuffer>(0), others = **results.get<ffi::AnyBuffer>(1);
    size_t widths[] = {size_t(player.dimensions()[1]), size_t(others.dimensions()[2])};
    float* sums[] = {player.typed_data<float>(), others.typed_data<float>()};
    rows::Reader reader(arrays.tables);
    for_each_block(arrays.games, threads, [&](size_t game, size_t end) {
        rows::Symbols symbols(reader);
        std::vector<int32_t> rows(rows::MOST);
        for (; game < end; game++) {
            symbols.read(arrays.records + game * RECORD_SIZE);
            for (int view = 0; view < rows::VIEWS; view++) {
                const int32_t* last = symbols.write_rows(view, rows.data());
                bool turned = view > 0;
                size_t at = turned ? game * NUM_DIRECTIONS + view - 1 : game;
                rows::sum_rows(arrays.inputs[turned], widths[turned], rows.data(), last,
                               sums[turned] + at * widths[turned]);
            }
        }
    });
    return ffi::Error::Success();
}

// The gradient of weights of which `row_sums` made sums, from that of the sums. Threads share the
// columns, so that a weight's parts are added in the order of games.
inline ffi::Error row_gradients(ffi::RemainingArgs arguments, ffi::RemainingRets results, int32_t threads) {
    RowArrays arrays;
    if (!arrays.take(arguments) || results.size() != 2) return other_shapes();
    constexpr size_t block = 64;
    std::vector<std::vector<int32_t>> rows((arrays.games + block - 1) / block * rows::VIEWS);
    std::vector<uint16_t> counts(arrays.games * rows::VIEWS);
    rows::Reader reader(arrays.tables);
    for_each_block(arrays.games, threads, [&](size_t game, size_t end) {
        rows::Symbols symbols(reader);
        std::vector<int32_t> written(rows::MOST);
        for (; game < end; game++) {
            symbols.read(arrays.records + game * RECORD_SIZE);
            for (int view = 0; view < rows::VIEWS; view++) {
                int32_t* last = symbols.write_rows(view, written.data());
                std::vector<int32_t>& to = rows[game / block * rows::VIEWS + view];
                to.insert(to.end(), written.data(), last);
                counts[game * rows::VIEWS + view] = uint16_t(last - written.data());
            }
        }
    });
    for (size_t turned : {0, 1}) {
        ffi::AnyBuffer result = **results.get<ffi::AnyBuffer>(turned);
        size_t width = result.dimensions()[1], share = (width + threads - 1) / threads;
        float* to = result.typed_data<float>();
        auto scatter = [&](size_t first) {
            size_t columns = std::min(share, width - first);
            for (size_t row = 0; row < size_t(result.dimensions()[0]); row++)
                std::fill_n(to + row * width + first, columns, 0.0f);
            for (int view = turned; view < (turned ? rows::VIEWS : 1); view++) {
                const int32_t* row = nullptr;
                for (size_t game = 0; game < arrays.games; game++) {
                    if (game % block == 0) row = rows[game / block * rows::VIEWS + view].data();
                    size_t at = turned ? game * NUM_DIRECTIONS + view - 1 : game;
                    const float* gradient = arrays.inputs[turned] + at * width + first;
                    for (int left = counts[game * rows::VIEWS + view]; left > 0; left--, row++) {
                        float* weights = to + *row * width + first;
                        for (size_t column = 0; column < columns; column++)
                            weights[column] += gradient[column];
                    }
                }
            }
        };
        std::vector<std::thread> others;
        for (size_t first = share; first < width; first += share) others.emplace_back(scatter, first);
        scatter(0);
        for (std::thread& other : others) other.join();
    }
    return ffi::Error::Success();
}

}  // namespace hackmatrix
