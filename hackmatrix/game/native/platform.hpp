// What a compiler for GPUs is told besides, so that rules are written once.
#pragma once

#ifdef __CUDACC_RTC__
#define SEPARATE __noinline__  // once in the code: each copy in a kernel costs registers
#define ROLLED _Pragma("unroll 1")
#else
#define SEPARATE inline
#define ROLLED
#endif
