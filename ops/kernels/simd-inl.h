// The vector verbs of the kernels, on xsimd 8.1 to 13, compiled once per target.
//
// xsimd gives the arithmetic. What its version 8.1 does element by element (conversions between
// widths) or lacks (the product of 32-bit halves) is written here in intrinsics. No other file
// names xsimd, so that what its versions call differently is decided here alone.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <xsimd/xsimd.hpp>

namespace tritgrad::TRITGRAD_TARGET {
namespace {

using Arch = TRITGRAD_ARCH;
template <typename T>
using Batch = xsimd::batch<T, Arch>;
template <typename T>
using Mask = xsimd::batch_bool<T, Arch>;
using U8 = Batch<std::uint8_t>;
using I8 = Batch<std::int8_t>;
using I16 = Batch<std::int16_t>;
using I32 = Batch<std::int32_t>;
using U32 = Batch<std::uint32_t>;
using U64 = Batch<std::uint64_t>;
using I64 = Batch<std::int64_t>;
using F32 = Batch<float>;
using F64 = Batch<double>;

// The verbs that all versions of xsimd agree on.
using xsimd::abs;
using xsimd::any;
using xsimd::floor;
using xsimd::max;
using xsimd::min;
using xsimd::sadd;
using xsimd::select;
using xsimd::sqrt;
using xsimd::ssub;
using xsimd::to_float;

template <typename B>
constexpr std::int64_t kLanes = static_cast<std::int64_t>(B::size);

// Not load and store: for a batch the compiler would also find xsimd's own, which want alignment.
template <typename B>
B read(const typename B::value_type* p) {
  return B::load_unaligned(p);
}

template <typename B>
void write(typename B::value_type* p, const B& x) {
  x.store_unaligned(p);
}

template <typename B>
B clamp(const B& x, const B& low, const B& high) {
  return min(max(x, low), high);
}

// 1 where the mask is set, 0 elsewhere.
template <typename T>
Batch<T> one_if(const Mask<T>& mask) {
  return select(mask, Batch<T>(T{1}), Batch<T>(T{0}));
}

// The bits of x as a batch of other numbers. xsimd's own cast takes a type of batches in version 8
// and a type of numbers in version 13.
template <typename B, typename T>
B bits_as(const Batch<T>& x) {
  return reinterpret_cast<typename B::register_type>(
      static_cast<typename Batch<T>::register_type>(x));
}

// The bytes at p, and zeros, at most sixteen.
template <std::int64_t kCount>
__m128i first_bytes(const std::uint8_t* p) {
  static_assert(kCount == 16 || kCount <= 8);
  if constexpr (kCount == 16) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  } else {
    std::uint64_t bytes = 0;
    __builtin_memcpy(&bytes, p, kCount);
    return _mm_cvtsi64_si128(static_cast<long long>(bytes));
  }
}

// Asks for the memory of n numbers that a pass over a tensor will read next, behind those that an
// optimizer takes through decoding, arithmetic and encoding before it comes back for more: so long
// a pause stops the processor's own prefetching, which also starts anew at the end of each page, in
// each of several arrays. Into the second cache: a Zen 4, it seems, can wait for too few lines on
// their way to the first one (PERFORMANCE.md). Inlined at once, as engine/memory/prefetch.h says.
constexpr std::int64_t kAhead = 1280;
template <typename T>
[[gnu::always_inline]] inline void read_ahead(const T* next, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 64 / static_cast<std::int64_t>(sizeof(T))) {
    _mm_prefetch(reinterpret_cast<const char*>(next + kAhead + i), _MM_HINT_T1);
  }
}

#ifdef __AVX512F__

I16 read_i16(const std::int8_t* p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
I32 read_i32(const std::int8_t* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline I32 read_i32(const std::int16_t* p) {
  return _mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
I32 read_i32(const std::uint16_t* p) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
F64 read_f64(const float* p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
inline F64 low_half(const F32& x) { return _mm512_cvtps_pd(_mm512_castps512_ps256(x)); }
inline F64 high_half(const F32& x) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)); }

// The whole number below, or the nearest; the smallest one for what is smaller still, 0 for NaN.
I32 floor_or_zero(const F32& x) {
  return _mm512_maskz_cvt_roundps_epi32(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x,
                                        _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
I32 to_nearest_or_zero(const F32& x) {
  return _mm512_maskz_cvt_roundps_epi32(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x,
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// These are for numbers that fit an integer; of others they make anything.
inline I32 floor_of_small(const F32& x) {
  return _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
inline I32 nearest_of_small(const F32& x) {
  return _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// a b + c, for sums and products that are exact and so may be fused; xsimd 8.1 does not fuse them.
inline F32 multiply_add(const F32& a, const F32& b, const F32& c) {
  return _mm512_fmadd_ps(a, b, c);
}
// a + bits / 2^32. Only the 23 highest bits may be set.
inline F32 plus_fraction(const F32& a, const I32& bits) {
  return multiply_add(F32(_mm512_cvtepu32_ps(bits)), F32(0x1p-32f), a);
}
// a with its sign changed where x is negative, and 0 where x is 0, infinite or NaN.
inline F32 times_finite_sign(const F32& a, const F32& x) {
  constexpr int kNanZeroInfinity = 0x9F, kAXorBAndC = 0x78;
  const __m512i number = _mm512_ternarylogic_epi32(_mm512_castps_si512(a), _mm512_castps_si512(x),
                                                   _mm512_set1_epi32(INT32_MIN), kAXorBAndC);
  return _mm512_mask_mov_ps(_mm512_castsi512_ps(number),
                            _mm512_fpclass_ps_mask(x, kNanZeroInfinity), _mm512_setzero_ps());
}
inline F64 multiply_add(const F64& a, const F64& b, const F64& c) {
  return _mm512_fmadd_pd(a, b, c);
}

// Two or four vectors as one of narrower numbers, which saturate.
I16 narrow(const I32& low, const I32& high) {
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  return _mm512_permutexvar_epi64(order, _mm512_packs_epi32(low, high));
}
I8 narrow(const I32& a, const I32& b, const I32& c, const I32& d) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i packed = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
  return _mm512_permutexvar_epi32(order, packed);
}
// Byte j of word i is word i of the j-th vector, saturated.
inline I8 interleave_bytes(const I32& a, const I32& b, const I32& c, const I32& d) {
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m512i packed = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
  return _mm512_shuffle_epi8(packed, order);
}
// Sums of eight neighbouring bytes each.
inline U64 sum_eights(const U8& x) { return _mm512_sad_epu8(x, _mm512_setzero_si512()); }
// Lanes 0, 2, 4 and so on (1, 3, 5) of a and b, one of each in turn. xsimd's zip_lo and zip_hi are
// these in version 8 and the halves of the whole vectors in version 13.
inline U64 interleave_even(const U64& a, const U64& b) { return _mm512_unpacklo_epi64(a, b); }
inline U64 interleave_odd(const U64& a, const U64& b) { return _mm512_unpackhi_epi64(a, b); }
inline U64 exclusive_or(const U64& a, const U64& b, const U64& c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}
// The low halves of the lanes of b above those of a.
inline U64 join_low_halves(const U64& a, const U64& b) {
  return _mm512_mask_shuffle_epi32(a, 0xAAAA, b, _MM_PERM_CCAA);
}
// Returns the sum of all lanes, modulo 2^64 or 2^32; xsimd 8.1 goes through memory.
inline std::int64_t sum_lanes(const U64& x) { return _mm512_reduce_add_epi64(x); }
inline std::int32_t sum_lanes(const I32& x) { return _mm512_reduce_add_epi32(x); }
// Sums of lanes i, i + 4, i + 8 and so on.
inline __m128 sum_fourths(const F32& x) {
  const __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  return _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
}
inline std::int64_t count(const Mask<std::int8_t>& mask) {
  return __builtin_popcountll(static_cast<__mmask64>(mask));
}
// A bit for each lane, the first one lowest.
inline std::uint64_t lanes_of(const Mask<std::int32_t>& mask) {
  return static_cast<__mmask16>(mask);
}
// counts + 1 where the mask is set.
inline U8 count_up(const U8& counts, const Mask<std::int8_t>& mask) {
  return _mm512_mask_add_epi8(counts, static_cast<__mmask64>(mask), counts, _mm512_set1_epi8(1));
}

// Narrowing writes: every value must fit the narrow type.
void write_narrow(std::int8_t* p, const I16& x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi16_epi8(x));
}
void write_narrow(std::int16_t* p, const I32& x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(x));
}
void write_narrow(std::uint16_t* p, const U32& x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(x));
}

// The 64-bit products of the low 32 bits of each lane.
U64 multiply_low_halves(const U64& a, const U64& b) { return _mm512_mul_epu32(a, b); }
// Squares of lanes 0, 2, 4 and so on; lanes 1, 3, 5 in their place.
I64 square_even_lanes(const I32& x) { return _mm512_mul_epi32(x, x); }
I32 odd_to_even_lanes(const I32& x) { return _mm512_srli_epi64(x, 32); }

// Sums of two neighbouring products, in lanes twice as wide: bytes 0..255 times bytes (saturating),
// and 16-bit numbers.
inline __m512i multiply_pairs_u8_i8(__m512i a, __m512i b) { return _mm512_maddubs_epi16(a, b); }
inline __m512i multiply_pairs_i16(__m512i a, __m512i b) { return _mm512_madd_epi16(a, b); }
// Bytes without their signs (128 for -128); x with the sign of y times its own, where y is not 0.
inline __m512i magnitudes(__m512i x) { return _mm512_abs_epi8(x); }
inline __m512i with_signs(__m512i x, __m512i y) {
  return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(y), _mm512_setzero_si512(), x);
}
// Reads less than a vector: the first `count` numbers at p, and `otherwise` in the other lanes; of
// bytes at least one and up to all.
inline I32 read_first(const std::int32_t* p, std::int64_t count, const I32& otherwise) {
  return _mm512_mask_loadu_epi32(otherwise, static_cast<__mmask16>((1u << count) - 1), p);
}
inline F32 read_first(const float* p, std::int64_t count, const F32& otherwise) {
  return _mm512_mask_loadu_ps(otherwise, static_cast<__mmask16>((1u << count) - 1), p);
}
inline I8 read_first(const std::int8_t* p, std::int64_t count, const I8& otherwise) {
  return _mm512_mask_loadu_epi8(otherwise, ~std::uint64_t{0} >> (64 - count), p);
}
// Writes the first `count` bytes, at least one.
inline void write_first(std::int8_t* p, const I8& x, std::int64_t count) {
  _mm512_mask_storeu_epi8(p, ~std::uint64_t{0} >> (64 - count), x);
}

// Numbers of 4 bits, two to a byte, the first one below: as many as a vector has bytes.
inline U8 read_nibbles(const std::uint8_t* p) {
  const __m512i pairs =
      _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_and_si512(_mm512_or_si512(pairs, _mm512_slli_epi16(pairs, 4)),
                          _mm512_set1_epi8(15));
}
inline void write_nibbles(std::uint8_t* p, const U8& x) {
  const __m512i pairs = _mm512_or_si512(x, _mm512_srli_epi16(x, 4));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi16_epi8(pairs));
}

// Returns the upper halves of products of 16-bit numbers.
inline __m512i multiply_high_u16(__m512i a, __m512i b) { return _mm512_mulhi_epu16(a, b); }
// Bytes 0, 2, 4 and so on of a, the others of b.
inline __m512i even_and_odd(__m512i a, __m512i b) {
  return _mm512_mask_blend_epi8(0x5555555555555555, b, a);
}
// table[index], with a table of kCount bytes, and zeros, and indices 0..15.
template <std::int64_t kCount = 16>
U8 table_of(const std::uint8_t* bytes) {
  return _mm512_broadcast_i32x4(first_bytes<kCount>(bytes));
}
inline U8 look_up(const U8& table, const U8& index) { return _mm512_shuffle_epi8(table, index); }
// Writes bytes 0, kEvery, 2 kEvery and so on of x; kEvery is 4, 8 or 16.
template <int kEvery>
inline void write_every(std::int8_t* p, const I8& x) {
  __m128i bytes;
  if constexpr (kEvery == 4) {
    bytes = _mm512_cvtepi32_epi8(x);
  } else if constexpr (kEvery == 8) {
    bytes = _mm512_cvtepi64_epi8(x);
  } else {
    const __m512i order = _mm512_castsi128_si512(_mm_setr_epi32(0, 4, 8, 12));
    bytes = _mm_cvtepi32_epi8(_mm512_castsi512_si128(_mm512_permutexvar_epi32(order, x)));
  }
  __builtin_memcpy(p, &bytes, 64 / kEvery);
}
template <int kBits>
inline __m512i shift_right_u16(__m512i a) {
  return _mm512_srli_epi16(a, kBits);
}

#else

I16 read_i16(const std::int8_t* p) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
I32 read_i32(const std::int8_t* p) {
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
inline I32 read_i32(const std::int16_t* p) {
  return _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
I32 read_i32(const std::uint16_t* p) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
F64 read_f64(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
inline F64 low_half(const F32& x) { return _mm256_cvtps_pd(_mm256_castps256_ps128(x)); }
inline F64 high_half(const F32& x) { return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)); }

// The whole number below, or the nearest; the smallest one for what is smaller still, 0 for NaN.
I32 to_nearest_or_zero(const F32& x) {
  const __m256 ordered = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
  return _mm256_and_si256(_mm256_cvtps_epi32(x), _mm256_castps_si256(ordered));
}
I32 floor_or_zero(const F32& x) { return to_nearest_or_zero(floor(x)); }
inline I32 floor_of_small(const F32& x) { return _mm256_cvtps_epi32(floor(x)); }
inline I32 nearest_of_small(const F32& x) { return _mm256_cvtps_epi32(x); }

inline F32 multiply_add(const F32& a, const F32& b, const F32& c) {
  return _mm256_fmadd_ps(a, b, c);
}
// The bits are taken as the fraction of a float in [1, 2).
inline F32 plus_fraction(const F32& a, const I32& bits) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 fraction = _mm256_castsi256_ps(_mm256_srli_epi32(bits, 9));
  return _mm256_add_ps(a, _mm256_sub_ps(_mm256_or_ps(fraction, one), one));
}
inline F32 times_finite_sign(const F32& a, const F32& x) {
  const __m256 sign = _mm256_set1_ps(-0.0f), infinity = _mm256_set1_ps(__builtin_inff());
  const __m256 magnitude = _mm256_andnot_ps(sign, x);
  const __m256 has_sign = _mm256_and_ps(_mm256_cmp_ps(magnitude, _mm256_setzero_ps(), _CMP_GT_OQ),
                                        _mm256_cmp_ps(magnitude, infinity, _CMP_LT_OQ));
  return _mm256_and_ps(has_sign, _mm256_xor_ps(a, _mm256_and_ps(x, sign)));
}
inline F64 multiply_add(const F64& a, const F64& b, const F64& c) {
  return _mm256_fmadd_pd(a, b, c);
}

// Two or four vectors as one of narrower numbers, which saturate.
I16 narrow(const I32& low, const I32& high) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0b11011000);
}
I8 narrow(const I32& a, const I32& b, const I32& c, const I32& d) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_permutevar8x32_epi32(packed, order);
}
inline I8 interleave_bytes(const I32& a, const I32& b, const I32& c, const I32& d) {
  const __m256i order = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_shuffle_epi8(packed, order);
}
inline U64 interleave_even(const U64& a, const U64& b) { return _mm256_unpacklo_epi64(a, b); }
inline U64 interleave_odd(const U64& a, const U64& b) { return _mm256_unpackhi_epi64(a, b); }
inline U64 exclusive_or(const U64& a, const U64& b, const U64& c) {
  return _mm256_xor_si256(_mm256_xor_si256(a, b), c);
}
inline U64 join_low_halves(const U64& a, const U64& b) {
  return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA);
}
inline U64 sum_eights(const U8& x) { return _mm256_sad_epu8(x, _mm256_setzero_si256()); }
inline std::int64_t sum_lanes(const U64& x) {
  const __m128i halves = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  return _mm_cvtsi128_si64(_mm_add_epi64(halves, _mm_unpackhi_epi64(halves, halves)));
}
inline std::int32_t sum_lanes(const I32& x) {
  const __m128i halves = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  const __m128i pairs = _mm_add_epi32(halves, _mm_unpackhi_epi64(halves, halves));
  return _mm_cvtsi128_si32(_mm_add_epi32(pairs, _mm_srli_epi64(pairs, 32)));
}
inline __m128 sum_fourths(const F32& x) {
  return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}
inline std::int64_t count(const Mask<std::int8_t>& mask) {
  return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_epi8(mask)));
}
inline std::uint64_t lanes_of(const Mask<std::int32_t>& mask) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}
inline U8 count_up(const U8& counts, const Mask<std::int8_t>& mask) {
  return _mm256_sub_epi8(counts, mask);
}

// Packing works within 128-bit halves; this joins the low quarter of each half and writes them.
void write_packed_halves(void* p, __m256i packed) {
  const __m256i joined = _mm256_permute4x64_epi64(packed, 0b1000);
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_castsi256_si128(joined));
}

// Narrowing writes: every value must fit the narrow type.
void write_narrow(std::int8_t* p, const I16& x) {
  write_packed_halves(p, _mm256_packs_epi16(x, x));
}
void write_narrow(std::int16_t* p, const I32& x) {
  write_packed_halves(p, _mm256_packs_epi32(x, x));
}
void write_narrow(std::uint16_t* p, const U32& x) {
  write_packed_halves(p, _mm256_packus_epi32(x, x));
}

// The 64-bit products of the low 32 bits of each lane.
U64 multiply_low_halves(const U64& a, const U64& b) { return _mm256_mul_epu32(a, b); }
// Squares of lanes 0, 2, 4 and so on; lanes 1, 3, 5 in their place.
I64 square_even_lanes(const I32& x) { return _mm256_mul_epi32(x, x); }
I32 odd_to_even_lanes(const I32& x) { return _mm256_srli_epi64(x, 32); }

// Sums of two neighbouring products, in lanes twice as wide: bytes 0..255 times bytes (saturating),
// and 16-bit numbers.
inline __m256i multiply_pairs_u8_i8(__m256i a, __m256i b) { return _mm256_maddubs_epi16(a, b); }
inline __m256i multiply_pairs_i16(__m256i a, __m256i b) { return _mm256_madd_epi16(a, b); }
// Bytes without their signs (128 for -128); x with the sign of y times its own, where y is not 0.
inline __m256i magnitudes(__m256i x) { return _mm256_abs_epi8(x); }
inline __m256i with_signs(__m256i x, __m256i y) { return _mm256_sign_epi8(x, y); }
// Reads less than a vector, as the one for AVX-512 does.
template <typename T>
Batch<T> read_first(const T* p, std::int64_t count, const Batch<T>& otherwise) {
  using Numbers = Batch<T>;
  T numbers[Numbers::size];
  write(numbers, otherwise);
  __builtin_memcpy(numbers, p, static_cast<std::size_t>(count) * sizeof(T));
  return read<Numbers>(numbers);
}
inline void write_first(std::int8_t* p, const I8& x, std::int64_t count) {
  std::int8_t numbers[I8::size];
  write(numbers, x);
  __builtin_memcpy(p, numbers, static_cast<std::size_t>(count));
}
inline U8 read_nibbles(const std::uint8_t* p) {
  const __m256i pairs = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_and_si256(_mm256_or_si256(pairs, _mm256_slli_epi16(pairs, 4)),
                          _mm256_set1_epi8(15));
}
inline void write_nibbles(std::uint8_t* p, const U8& x) {
  const __m256i pairs = _mm256_or_si256(x, _mm256_srli_epi16(x, 4));
  const __m256i bytes = _mm256_and_si256(pairs, _mm256_set1_epi16(0xFF));
  write_packed_halves(p, _mm256_packus_epi16(bytes, bytes));
}
inline __m256i multiply_high_u16(__m256i a, __m256i b) { return _mm256_mulhi_epu16(a, b); }
inline __m256i even_and_odd(__m256i a, __m256i b) {
  const __m256i even = _mm256_set1_epi16(0xFF);
  return _mm256_or_si256(_mm256_and_si256(even, a), _mm256_andnot_si256(even, b));
}
template <std::int64_t kCount = 16>
U8 table_of(const std::uint8_t* bytes) {
  return _mm256_broadcastsi128_si256(first_bytes<kCount>(bytes));
}
inline U8 look_up(const U8& table, const U8& index) { return _mm256_shuffle_epi8(table, index); }
template <int kEvery>
inline void write_every(std::int8_t* p, const I8& x) {
  constexpr std::size_t kBytes = 16 / kEvery;
  const __m256i order = _mm256_broadcastsi128_si256(_mm_set_epi32(-1, -1, -1,
                                                                  kEvery == 4   ? 0x0C080400
                                                                  : kEvery == 8 ? 0x00000800
                                                                                : 0x00000000));
  const __m256i bytes = _mm256_shuffle_epi8(x, order);
  const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
  __builtin_memcpy(p, &low, kBytes);
  __builtin_memcpy(p + kBytes, &high, kBytes);
}
template <int kBits>
inline __m256i shift_right_u16(__m256i a) {
  return _mm256_srli_epi16(a, kBits);
}

#endif

// Writes the sums of all lanes of four vectors; returns that of one, added in the same order.
inline void write_sums(float* p, const F32& a, const F32& b, const F32& c, const F32& d) {
  _mm_storeu_ps(p, _mm_hadd_ps(_mm_hadd_ps(sum_fourths(a), sum_fourths(b)),
                               _mm_hadd_ps(sum_fourths(c), sum_fourths(d))));
}
inline float sum_lanes(const F32& x) {
  const __m128 pairs = _mm_hadd_ps(sum_fourths(x), sum_fourths(x));
  return _mm_cvtss_f32(_mm_hadd_ps(pairs, pairs));
}

// The nearest whole numbers to small ones, or those to which the noise rounds: floor(x +
// uniform_of(noise)).
inline I32 round_small(const F32& x, const std::uint16_t* noise) {
  if (noise == nullptr) return nearest_of_small(x);
  return floor_of_small(multiply_add(to_float(read_i32(noise)) + F32(0.5f), F32(0x1p-16f), x));
}

}  // namespace
}  // namespace tritgrad::TRITGRAD_TARGET
