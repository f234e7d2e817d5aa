// A driver of NVIDIA's that runs the kernels on this processor, one thread of the GPU after the other.
//
// It is compiled with the texts that NVRTC is given (`cuda.sources()`), and no standard library.

// What NVRTC knows without a header.
#define __CUDACC_RTC__
#define __global__
#define __device__ static
#define __noinline__ inline

using Size = decltype(sizeof 0);

extern "C" {
void* memcpy(void* to, const void* from, Size bytes);
void* memset(void* to, int byte, Size bytes);
int strcmp(const char* one, const char* other);
void* malloc(Size bytes);
void free(void* memory);
}

constexpr int __ffsll(unsigned long long bits) { return __builtin_ffsll(bits); }
constexpr int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
constexpr int __clzll(unsigned long long bits) { return __builtin_clzll(bits); }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline void atomicAdd(unsigned* number, unsigned more) { *number += more; }

namespace std {
template <class T> class initializer_list {
    const T* first;
    Size count;

public:
    constexpr const T* begin() const { return first; }
    constexpr const T* end() const { return first + count; }
};
}  // namespace std

struct Index { unsigned x; };
static thread_local Index threadIdx, blockIdx, blockDim;

#include "kernels.cu"

struct Kernel { const char* name; void (*run)(void** given); };

template <class Arrays>
void run(void (*kernel)(Arrays, Settings, Range), void** given) {
    kernel(*static_cast<Arrays*>(given[0]), *static_cast<Settings*>(given[1]), *static_cast<Range*>(given[2]));
}

#define ROW(name) {#name, [](void** given) { run(::name, given); }}
static const Kernel KERNELS[] = {ROW(reset), ROW(observe), ROW(masks), ROW(imagine), ROW(tactical),
                                 ROW(state_words), ROW(saved_words), ROW(states), ROW(saved), ROW(step)};

extern "C" {

int cuInit(unsigned) { return 0; }
int cuLibraryLoadData(const void** library, const void*, void*, void*, unsigned, void*, void*, unsigned) {
    *library = KERNELS;
    return 0;
}
int cuLibraryGetKernel(const void** kernel, void*, const char* name) {
    *kernel = nullptr;
    for (const Kernel& each : KERNELS)
        if (!strcmp(each.name, name)) *kernel = &each;
    return *kernel ? 0 : 500;
}
int cuKernelGetFunction(void** function, void* kernel) { return *function = kernel, 0; }
int cuLibraryGetGlobal(Size* address, Size* bytes, void*, const char* name) {
    if (strcmp(name, "num_illegal")) return 500;
    *address = reinterpret_cast<Size>(&num_illegal), *bytes = sizeof num_illegal;
    return 0;
}
int cuLaunchKernel(void* kernel, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned, void*, void** given, void**) {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++)
            static_cast<const Kernel*>(kernel)->run(given);
    return 0;
}
int cuMemsetD8Async(Size to, unsigned char value, Size bytes, void*) {
    return memset(reinterpret_cast<void*>(to), value, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, Size from, Size bytes, void*) {
    return memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
}
int cuStreamSynchronize(void*) { return 0; }
int cuDeviceGet(int* device, int) { return *device = 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = nullptr, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuMemAlloc_v2(Size* address, Size bytes) { return *address = reinterpret_cast<Size>(malloc(bytes)), 0; }
int cuMemFree_v2(Size address) { return free(reinterpret_cast<void*>(address)), 0; }
int cuMemcpyHtoD_v2(Size to, const void* from, Size bytes) {
    return memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
int cuMemcpyDtoH_v2(void* to, Size from, Size bytes) { return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr); }
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_NOT_FOUND", 0; }
}
