// The handlers of `cuda.cpp` for XLA on CPUs, which has no streams, behind an interface in C.
#include "xla/ffi/api/ffi.h"

struct NoStream {};

template <>
struct xla::ffi::CtxDecoding<NoStream> {
    using Type = void*;
    static std::optional<Type> Decode(const XLA_FFI_Api*, XLA_FFI_ExecutionContext*, DiagnosticEngine&) {
        return nullptr;
    }
};

#define STREAM NoStream
#include "cuda.cpp"

extern "C" {
const char* load(const char* image) {
    static std::string why;
    return (why = load_kernels(image)).c_str();
}
void* handler_of(const char* name) {
    for (auto [each, handler] : cuda_handlers())
        if (!std::strcmp(each, name)) return handler;
    return nullptr;
}
}
