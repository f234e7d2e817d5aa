// The face for XLA on NVIDIA's GPUs: launches the kernels of `kernels.cu`.
//
// It needs no CUDA to build: `load_kernels` looks up the few functions of the driver.
#ifndef _WIN32
#include <dlfcn.h>
#endif

#include <cstring>
#include <string>

#include "calls.hpp"
#include "xla.hpp"

namespace ffi = xla::ffi;
using namespace hackmatrix;

namespace {

// Types of the driver: cuda.h names them.
using Stream = void*;    // CUstream
#ifndef STREAM           // tests run the handlers where XLA has no stream
#define STREAM ffi::PlatformStream<Stream>
#endif
using Library = void*;   // CUlibrary
using Kernel = void*;    // CUkernel; launched as the CUfunction of the current context
using Address = size_t;  // CUdeviceptr
using Code = int;        // CUresult

constexpr unsigned THREADS = 64;  // of a block

struct Driver {
    Code (*init)(unsigned);
    Code (*load)(Library*, const void* image, void*, void*, unsigned, void*, void*, unsigned);
    Code (*kernel)(Kernel*, Library, const char* name);
    Code (*function)(void**, Kernel);
    Code (*global)(Address*, size_t* bytes, Library, const char* name);
    Code (*launch)(Kernel, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned shared, Stream, void** parameters, void** extra);
    Code (*set)(Address, unsigned char, size_t, Stream);
    Code (*fetch)(void*, Address, size_t, Stream);
    Code (*wait)(Stream);
    Code (*name_of)(Code, const char**);
} driver;

Library kernels;

std::string text_of(const char* what, Code code) {
    const char* name = "unknown error";
    driver.name_of(code, &name);
    return std::string(what) + ": " + name;
}

#define TRY(what, call) \
    if (Code code = (call)) return ffi::Error::Internal(text_of(what, code))

ffi::Error kernel_of(const char* name, Kernel& kernel) {
    if (!kernels) return ffi::Error::Internal("the native engine's kernels are not loaded");
    TRY(name, driver.kernel(&kernel, kernels, name));
    return ffi::Error::Success();
}

// Brings a kernel to the device whose program is about to run: this must not happen while its
// stream is captured.
ffi::Error initialize(const char* name) {
    Kernel kernel;
    void* function;
    if (ffi::Error error = kernel_of(name, kernel); error.failure()) return error;
    TRY(name, driver.function(&function, kernel));
    return ffi::Error::Success();
}

template <class Call>
ffi::Error launch(const char* name, Stream stream, ffi::RemainingArgs& arguments,
                  ffi::RemainingRets& results, Settings settings) {
    CallArrays<Call> arrays;
    if (!arrays.take(arguments, results)) return other_shapes();
    Kernel kernel;
    if (ffi::Error error = kernel_of(name, kernel); error.failure()) return error;
    struct { size_t first; unsigned count; } games{0, static_cast<unsigned>(arrays.games)};
    unsigned blocks = (games.count + THREADS - 1) / THREADS;
    if (!blocks) return ffi::Error::Success();
    void* parameters[] = {arrays.at, &settings, &games};
    TRY(name, driver.launch(kernel, blocks, 1, 1, THREADS, 1, 1, 0, stream, parameters, nullptr));
    return ffi::Error::Success();
}

// Launches a kernel and waits for it; an error if one of the games is not legal.
template <class Call>
ffi::Error check(const char* name, Stream stream, ffi::RemainingArgs& arguments,
                 ffi::RemainingRets& results) {
    Address address;
    size_t bytes;
    unsigned illegal;
    if (!kernels) return ffi::Error::Internal("the native engine's kernels are not loaded");
    TRY(name, driver.global(&address, &bytes, kernels, "num_illegal"));
    TRY(name, driver.set(address, 0, sizeof illegal, stream));
    ffi::Error error = launch<Call>(name, stream, arguments, results, {});
    if (error.failure()) return error;
    TRY(name, driver.fetch(&illegal, address, sizeof illegal, stream));
    TRY(name, driver.wait(stream));
    return illegal ? ffi::Error::InvalidArgument("not a legal state of HackMatrix")
                   : ffi::Error::Success();
}

#define BINDING \
    ffi::Ffi::Bind().Ctx<STREAM>().RemainingArgs().RemainingRets().Attr<int32_t>("threads")
#define INITIALIZER(name)                                                                  \
    XLA_FFI_DEFINE_HANDLER(before_##name, [] { return initialize(#name); },                \
                           ffi::Ffi::Bind<ffi::ExecutionStage::kInitialize>())
#define HANDLER(name, Call)                                                                \
    INITIALIZER(name);                                                                     \
    XLA_FFI_DEFINE_HANDLER(                                                                \
        on_##name,                                                                         \
        [](Stream stream, ffi::RemainingArgs arguments, ffi::RemainingRets results, int32_t) { \
            return launch<Call>(#name, stream, arguments, results, {});                    \
        },                                                                                 \
        BINDING, {ffi::Traits::kCmdBufferCompatible})
#define CHECKED(name, Call)                                                                \
    INITIALIZER(name);                                                                     \
    XLA_FFI_DEFINE_HANDLER(                                                                \
        on_##name,                                                                         \
        [](Stream stream, ffi::RemainingArgs arguments, ffi::RemainingRets results, int32_t) { \
            return check<Call>(#name, stream, arguments, results);                         \
        },                                                                                 \
        BINDING)

HANDLER(reset, ResetCall);
HANDLER(observe, ObserveCall);
HANDLER(imagine, ImagineCall);
HANDLER(tactical, TacticalCall);
CHECKED(masks, MasksCall);
CHECKED(state_words, StateWordsCall);
CHECKED(saved_words, SavedWordsCall);
CHECKED(states, StatesCall);
CHECKED(saved, SavedCall);

INITIALIZER(step);
XLA_FFI_DEFINE_HANDLER(
    on_step,
    [](Stream stream, ffi::RemainingArgs arguments, ffi::RemainingRets results, int32_t,
       int32_t max_episode_steps, bool auto_reset, bool progress) {
        return launch<StepCall>("step", stream, arguments, results,
                                {max_episode_steps, auto_reset, progress});
    },
    BINDING.Attr<int32_t>("max_episode_steps").Attr<bool>("auto_reset").Attr<bool>("progress"),
    {ffi::Traits::kCmdBufferCompatible});

}  // namespace

std::string load_kernels(const char* image) {
#ifdef _WIN32
    return "there is no CUDA for JAX on Windows";
#else
    if (kernels) return "";
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return "there is no driver of NVIDIA's (libcuda.so.1)";
    bool complete = true;
    auto look_up = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
        complete &= function != nullptr;
    };
    look_up(driver.init, "cuInit");
    look_up(driver.load, "cuLibraryLoadData");
    look_up(driver.kernel, "cuLibraryGetKernel");
    look_up(driver.function, "cuKernelGetFunction");
    look_up(driver.global, "cuLibraryGetGlobal");
    look_up(driver.launch, "cuLaunchKernel");
    look_up(driver.set, "cuMemsetD8Async");
    look_up(driver.fetch, "cuMemcpyDtoHAsync_v2");
    look_up(driver.wait, "cuStreamSynchronize");
    look_up(driver.name_of, "cuGetErrorName");
    if (!complete) return "NVIDIA's driver is older than CUDA 12";
    if (Code code = driver.init(0)) return text_of("NVIDIA's driver does not start", code);
    Code code = driver.load(&kernels, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
    return code ? text_of("NVIDIA's driver does not take the kernels", code) : "";
#endif
}

#define EACH_CALL(of)                                                                        \
    {of(reset), of(observe), of(masks), of(imagine), of(tactical), of(state_words), \
     of(saved_words), of(states), of(saved), of(step)}

Handlers cuda_handlers() {
#define HANDLER_OF(name) {#name, reinterpret_cast<void*>(on_##name)}
    return EACH_CALL(HANDLER_OF);
}

Handlers cuda_initializers() {
#define INITIALIZER_OF(name) {#name, reinterpret_cast<void*>(before_##name)}
    return EACH_CALL(INITIALIZER_OF);
}
