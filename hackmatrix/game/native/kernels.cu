// The custom calls for XLA as kernels for NVIDIA's GPUs: a thread for each game.
//
// `cuda.py` has NVRTC compile this for the device; `cuda.cpp` launches it.
#include "calls.hpp"

using namespace hackmatrix;

template <class Call>
struct Pointers { void* at[std::size(Call::BYTES)]; };

__device__ unsigned num_illegal;  // games, since `cuda.cpp` set it to 0

// The games of a launch: `count` from `first` on. That the first is no constant keeps the upper half
// of an index out of the registers that a warp shares, which ptxas 13.0 overwrites when threads part.
struct Range { size_t first; unsigned count; };

// The game of this thread, unless there are fewer.
#define GAME(games)                                                \
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;       \
    if (thread >= games.count) return;                             \
    size_t game = games.first + thread;

#define KERNEL(name, Call)                                                          \
    extern "C" __global__ void name(Pointers<Call> arrays, Settings, Range games) { \
        GAME(games)                                                                 \
        if (Call::play(arrays.at, game)) atomicAdd(&num_illegal, 1u);               \
    }

KERNEL(reset, ResetCall)
KERNEL(observe, ObserveCall)
KERNEL(masks, MasksCall)
KERNEL(imagine, ImagineCall)
KERNEL(tactical, TacticalCall)
KERNEL(state_words, StateWordsCall)
KERNEL(saved_words, SavedWordsCall)
KERNEL(states, StatesCall)
KERNEL(saved, SavedCall)

extern "C" __global__ void step(Pointers<StepCall> arrays, Settings settings, Range games) {
    GAME(games)
    StepCall::begin(arrays.at, game, 1);
    step_game(StepCall::games(arrays.at), StepCall::actions(arrays.at)[game], settings,
              StepCall::results(arrays.at), game);
}
