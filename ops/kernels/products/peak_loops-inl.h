// The peak loops of one target (engine/kernels/peak_loops.h), compiled once per target with its
// flags.
//
// Operations are counted as products and additions that a matrix product needs: an instruction that
// adds up products of neighbours counts with all of them, one that only widens sums with none.
#pragma once

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include <cstring>

#include "ops/kernels/targets.h"
#include "ops/kernels/unrolled-inl.h"
#ifdef TRITGRAD_TILES
#include "ops/kernels/products/tile_product-inl.h"
#endif
#ifdef __AVX2__
#include "ops/kernels/simd-inl.h"
#endif

namespace tritgrad::TRITGRAD_TARGET {
namespace {

// Sums that do not wait for each other: at least the longest latency (5 cycles) times the two units
// that may work side by side. With two operands and a product in between 12 fit 16 registers. With
// VNNI one instruction does it all, and twice as many fit, which make up for what the units lose to
// the counting of rounds: on an Emerald Rapids 12 reach 704 of 767 GOP/s, 24 reach 758.
#ifdef __AVX512VNNI__
constexpr int kSums = 24;
#else
constexpr int kSums = 12;
#endif

// An empty instruction: the compiler must assume that `x` is another number now, so that nothing
// is computed once and reused, nothing is left out, and no memory is touched.
template <typename Vector>
inline void change(Vector& x) {
  asm volatile("" : "+x"(x));
}

// Each sum becomes step(sum, a, b), `rounds` times. Returns the number of steps.
// Not inlined: next to other code the compiler would keep sums in memory.
template <typename Sum, typename Operand, typename Step>
[[gnu::noinline]] std::int64_t run_in_registers(std::int64_t rounds, Sum first, Operand a,
                                                Operand b, const Step& step) {
  Sum sums[kSums];
  for (Sum& sum : sums) sum = first;
  for (std::int64_t round = 0; round < rounds; ++round) {
    unrolled<kSums>([&]<int i>() {
      change(a);
      sums[i] = step(sums[i], a, b);
    });
  }
  for (Sum& sum : sums) change(sum);
  return rounds * kSums;
}

#if defined(__AVX2__)

using Ints = I32::register_type;
constexpr std::int64_t kRegisterBytes = sizeof(Ints);
inline Ints all_bytes(char x) { return U8(static_cast<std::uint8_t>(x)); }
inline Ints join(Ints a, const std::byte* p) {
  return I32(a) | I32::load_aligned(reinterpret_cast<const std::int32_t*>(p));
}
constexpr const char* kFp32Name = "vfmadd";
// xsimd's fma() multiplies and adds apart for plain AVX2.
#ifdef __AVX512F__
inline __m512 all_floats(float x) { return _mm512_set1_ps(x); }
inline __m512 step_fp32(__m512 sum, __m512 a, __m512 b) { return _mm512_fmadd_ps(sum, a, b); }
#else
inline __m256 all_floats(float x) { return _mm256_set1_ps(x); }
inline __m256 step_fp32(__m256 sum, __m256 a, __m256 b) { return _mm256_fmadd_ps(sum, a, b); }
#endif

#elif defined(__SSE2__)

constexpr std::int64_t kRegisterBytes = 16;
using Ints = __m128i;
constexpr const char* kFp32Name = "mulps + addps";
inline __m128 all_floats(float x) { return _mm_set1_ps(x); }
inline Ints all_bytes(char x) { return _mm_set1_epi8(x); }
inline Ints join(Ints a, const std::byte* p) {
  return _mm_or_si128(a, _mm_load_si128(reinterpret_cast<const Ints*>(p)));
}
inline __m128 step_fp32(__m128 sum, __m128 a, __m128 b) {
  return _mm_add_ps(_mm_mul_ps(sum, a), b);
}

#else

// No vector instructions that this file knows: 64 bits at a time.
constexpr std::int64_t kRegisterBytes = 8;
using Ints = std::int64_t;
inline Ints all_bytes(char x) { return x; }
inline Ints join(Ints a, const std::byte* p) { return a | *reinterpret_cast<const Ints*>(p); }

#endif

#if defined(TRITGRAD_TILES)

constexpr const char* kTritsName = "tdpbsud";

#elif defined(__AVX512VNNI__)

constexpr const char* kTritsName = "vpdpbusd";
constexpr std::int64_t kTritProducts = kRegisterBytes;
// Sums have the width of their numbers: with the type of the intrinsics g++ 12 copies every one.
// They are unsigned, as they run over.
using TritSums [[gnu::vector_size(kRegisterBytes)]] = std::uint32_t;
inline TritSums step_trits(TritSums sum, Ints a, Ints b) {
  return reinterpret_cast<TritSums>(_mm512_dpbusd_epi32(reinterpret_cast<Ints>(sum), a, b));
}

#elif defined(__AVX2__)

constexpr const char* kTritsName = "vpmaddubsw + vpaddw";
constexpr std::int64_t kTritProducts = kRegisterBytes;
using TritSums [[gnu::vector_size(kRegisterBytes)]] = std::uint16_t;
inline TritSums step_trits(TritSums sum, Ints a, Ints b) {
  return sum + reinterpret_cast<TritSums>(multiply_pairs_u8_i8(a, b));
}

#elif defined(__SSE2__)

// Bytes have no product of their own here; theirs go by 16-bit numbers.
constexpr const char* kTritsName = "pmaddwd + paddd";
constexpr std::int64_t kTritProducts = kRegisterBytes / 2;
using TritSums [[gnu::vector_size(kRegisterBytes)]] = std::uint32_t;
inline TritSums step_trits(TritSums sum, Ints a, Ints b) {
  return sum + reinterpret_cast<TritSums>(_mm_madd_epi16(a, b));
}

#endif

// Eight registers at a time, so that loads need not wait for the joining.
std::int64_t read(const std::byte* bytes, std::int64_t n) {
  constexpr int kStreams = 8;
  Ints joined[kStreams];
  for (Ints& stream : joined) stream = all_bytes(0);
  for (std::int64_t i = 0; i < n; i += kStreams * kRegisterBytes) {
#pragma GCC unroll 8
    for (int s = 0; s < kStreams; ++s) joined[s] = join(joined[s], bytes + i + s * kRegisterBytes);
  }
  std::int64_t all = 0;
  for (const Ints& stream : joined) {
    std::int64_t words[kRegisterBytes / 8];
    std::memcpy(words, &stream, sizeof(words));
    for (const std::int64_t word : words) all |= word;
  }
  return all;
}

#ifdef __SSE2__

std::int64_t run_fp32(std::int64_t rounds) {
  // x / 2 + 1 goes to 2 and stays there: no denormal, no infinity.
  return 2 * kRegisterBytes / 4 *
         run_in_registers(rounds, all_floats(1.0f), all_floats(0.5f), all_floats(1.0f),
                          [](auto sum, auto a, auto b) { return step_fp32(sum, a, b); });
}

#ifdef TRITGRAD_TILES

// Works on tile registers alone: four tiles of sums and four of operands. What the operands hold
// makes no difference.
std::int64_t run_trits(std::int64_t rounds) {
  constexpr std::int64_t kTileSums = 4;
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) shapes.set(tile, kRowsOfTile, kBytesOfRow);
  Tiles::configure(shapes);
  for (std::int64_t round = 0; round < rounds; ++round) {
    Tiles::add_product<0, 4, 6>();
    Tiles::add_product<1, 4, 7>();
    Tiles::add_product<2, 5, 6>();
    Tiles::add_product<3, 5, 7>();
  }
  return rounds * kTileSums * 2 * kRowsOfTile * kBytesOfRow * (kBytesOfRow / 4);
}

#else

std::int64_t run_trits(std::int64_t rounds) {
  return 2 * kTritProducts *
         run_in_registers(rounds, TritSums{}, all_bytes(2), all_bytes(1),
                          [](TritSums sum, Ints a, Ints b) { return step_trits(sum, a, b); });
}

#endif
#endif

}  // namespace

const PeakLoops kPeakLoops = {
#ifdef __SSE2__
    .fp32 = {kFp32Name, run_fp32},
    .int8_trits = {kTritsName, run_trits},
#else
    .fp32 = {"no loop for this processor", nullptr},
    .int8_trits = {"no loop for this processor", nullptr},
#endif
    .read = read,
};

}  // namespace tritgrad::TRITGRAD_TARGET
