// The names of the standard library that the engine uses, for NVRTC, which brings none.
//
// `cuda.py` hands it over as each of the standard headers.
#pragma once

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long uintptr_t;

#define offsetof(type, member) ((std::size_t) & ((type*)0)->member)
#define __builtin_ctzll(bits) (__ffsll(bits) - 1)
#define __builtin_popcountll(bits) __popcll(bits)
#define __builtin_clzll(bits) __clzll(bits)

namespace std {

using size_t = decltype(sizeof 0);

template <class T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <class T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> constexpr T max(initializer_list<T> all) {
    T most = *all.begin();
    for (const T& value : all) most = max(most, value);
    return most;
}
template <class T> constexpr const T& clamp(const T& x, const T& low, const T& high) {
    return x < low ? low : high < x ? high : x;
}
template <class T, size_t N> constexpr size_t size(const T (&)[N]) { return N; }
template <class In, class Out> constexpr Out copy(In from, In end, Out to) {
    for (; from != end; ++from) *to++ = *from;
    return to;
}
template <class In, class Out, class F> constexpr Out transform(In from, In end, Out to, F f) {
    for (; from != end; ++from) *to++ = f(*from);
    return to;
}
template <class It, class T> constexpr void fill(It from, It end, const T& x) {
    for (; from != end; ++from) *from = x;
}
template <class It, class T> constexpr void fill_n(It from, size_t n, const T& x) {
    for (; n; --n) *from++ = x;
}
template <class It, class F> constexpr It find_if(It from, It end, F f) {
    while (from != end && !f(*from)) ++from;
    return from;
}
template <class It, class F> constexpr bool any_of(It from, It end, F f) {
    return find_if(from, end, f) != end;
}
template <class It, class F> constexpr bool all_of(It from, It end, F f) {
    return !any_of(from, end, [&](const auto& x) { return !f(x); });
}
template <class It, class T> constexpr T accumulate(It from, It end, T sum) {
    for (; from != end; ++from) sum = sum + *from;
    return sum;
}
constexpr int abs(int x) { return x < 0 ? -x : x; }
inline float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }

template <class T, T V> struct integral_constant {
    static constexpr T value = V;
    constexpr operator T() const { return V; }
};
template <class T, size_t N> struct array {
    T items[N];
    constexpr T& operator[](size_t i) { return items[i]; }
    constexpr const T& operator[](size_t i) const { return items[i]; }
};

// By words: the engine copies few bytes, or a whole struct or record, all of which begin at a word.
inline void* memcpy(void* to, const void* from, size_t n) {
    if (n <= 8) return ::memcpy(to, from, n);
    for (size_t i = 0; i < n / 4; i++) ((uint32_t*)to)[i] = ((const uint32_t*)from)[i];
    for (size_t i = n / 4 * 4; i < n; i++) ((uint8_t*)to)[i] = ((const uint8_t*)from)[i];
    return to;
}
inline void* memset(void* to, int x, size_t n) { return ::memset(to, x, n); }

}  // namespace std

using std::size_t;
