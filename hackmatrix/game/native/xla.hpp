// What the faces for XLA share: the arrays of a custom call, and the handlers by name.
#pragma once
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "xla/ffi/api/ffi.h"

using Handlers = std::vector<std::pair<const char*, void*>>;

Handlers xla_handlers();       // of CPUs, by the name of the call
Handlers cuda_handlers();      // of NVIDIA's GPUs
Handlers cuda_initializers();  // of the same, before a program runs

// Gives the driver the compiled `kernels.cu`, a cubin or PTX that ends with 0; returns why it can't
// be used, or "".
std::string load_kernels(const char* image);

namespace hackmatrix {

// The arrays of a call, arguments first, and of how many games they are.
template <class Call>
struct CallArrays {
    void* at[std::size(Call::BYTES)];
    size_t games;

    // Takes them; whether all have as many bytes for each game as the call needs.
    bool take(xla::ffi::RemainingArgs& arguments, xla::ffi::RemainingRets& results) {
        size_t num_arguments = arguments.size(), all = num_arguments + results.size();
        if (all != std::size(at) || results.size() == 0) return false;
        games = (*results.get<xla::ffi::AnyBuffer>(0))->dimensions()[0];
        for (size_t i = 0; i < all; i++) {
            xla::ffi::AnyBuffer array = i < num_arguments
                                            ? *arguments.get<xla::ffi::AnyBuffer>(i)
                                            : **results.get<xla::ffi::AnyBuffer>(i - num_arguments);
            if (array.size_bytes() != games * Call::BYTES[i]) return false;
            at[i] = array.untyped_data();
        }
        return true;
    }
};

inline xla::ffi::Error other_shapes() {
    return xla::ffi::Error::InvalidArgument("arrays of other shapes or types");
}

}  // namespace hackmatrix
