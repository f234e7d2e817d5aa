// A driver of NVIDIA's that runs kernels on this processor: `ptx.py` has made them C++, in the file
// KERNELS.
#include <cstring>
#include <new>

#include KERNELS

extern "C" {

int cuInit(unsigned) { return 0; }
int cuLibraryLoadData(void** library, const void* image, void*, void*, unsigned, void*, void*, unsigned) {
    *library = const_cast<void*>(image);
    return std::memcmp(image, "//", 2) != 0;  // text, which PTX is
}
int cuLibraryGetKernel(void** kernel, void*, const char* name) {
    *kernel = nullptr;
    for (const Kernel& each : KERNEL_TABLE)
        if (!std::strcmp(each.name, name)) *kernel = const_cast<Kernel*>(&each);
    return *kernel ? 0 : 500;
}
int cuKernelGetFunction(void** function, void* kernel) { return *function = kernel, 0; }
int cuLibraryGetGlobal(size_t* address, size_t* bytes, void*, const char* name) {
    if (std::strcmp(name, "num_illegal")) return 500;
    *address = address_of(num_illegal), *bytes = sizeof num_illegal;
    return 0;
}
int cuLaunchKernel(void* kernel, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned, void*, void** given, void**) {
    const Kernel& of = *static_cast<Kernel*>(kernel);
    alignas(16) uint8_t parameters[512];
    for (const Argument& each : of.arguments)
        if (each.size) std::memcpy(parameters + each.offset, *given++, each.size);
    for (uint32_t block = 0; block < blocks; block++)
        for (uint32_t thread = 0; thread < threads; thread++)
            of.run(parameters, {thread, block, threads});
    return 0;
}
int cuMemsetD8Async(size_t to, unsigned char value, size_t bytes, void*) {
    return std::memset(reinterpret_cast<void*>(to), value, bytes), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, size_t from, size_t bytes, void*) {
    return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
}
int cuStreamSynchronize(void*) { return 0; }
int cuDeviceGet(int* device, int) { return *device = 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = nullptr, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuMemAlloc_v2(size_t* address, size_t bytes) {
    return *address = reinterpret_cast<size_t>(::operator new(bytes)), 0;
}
int cuMemFree_v2(size_t address) { return ::operator delete(reinterpret_cast<void*>(address)), 0; }
int cuMemcpyHtoD_v2(size_t to, const void* from, size_t bytes) {
    return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
int cuMemcpyDtoH_v2(void* to, size_t from, size_t bytes) {
    return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_NOT_FOUND", 0; }
}
