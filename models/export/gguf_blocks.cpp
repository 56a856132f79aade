#include "models/export/gguf_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/check.h"
#include "engine/formats/half_bits.h"

namespace tritgrad {
namespace {

static_assert(std::endian::native == std::endian::little, "floats are copied as they lie");

constexpr GgufTypeTraits kF32Traits{0, 0, 1, 4}, kF16Traits{1, 1, 1, 2},
    kTq1Traits{34, 36, 256, 54}, kTq2Traits{35, 37, 256, 66}, kQ2Traits{42, 41, 64, 18};

constexpr float kMostHalf = 65504.0f;

void append_half(std::string& out, float x) {
  const std::uint16_t bits = half_bits(x);
  out += static_cast<char>(bits & 255u);
  out += static_cast<char>(bits >> 8);
}

unsigned code_of(std::int8_t trit) { return static_cast<unsigned>(trit + 1); }

// Appends a byte of codes at 0, step, 2 step, ...; `count` of them, of at most five.
void append_base3(std::string& out, const std::int8_t* trits, int step, int count) {
  unsigned number = 0;
  for (int digit = 0; digit < 5; ++digit) {
    number = 3 * number + (digit < count ? code_of(trits[digit * step]) : 0);
  }
  out += static_cast<char>((256 * number + 242) / 243);
}

// Appends a byte of four codes at 0, step, 2 step, 3 step.
void append_two_bits(std::string& out, const std::int8_t* trits, int step) {
  unsigned byte = 0;
  for (int i = 0; i < 4; ++i) byte |= code_of(trits[i * step]) << (2 * i);
  out += static_cast<char>(byte);
}

void append_tq1_block(std::string& out, const std::int8_t* trits, float scale) {
  for (int j = 0; j < 32; ++j) append_base3(out, trits + j, 32, 5);
  for (int j = 0; j < 16; ++j) append_base3(out, trits + 160 + j, 16, 5);
  for (int j = 0; j < 4; ++j) append_base3(out, trits + 240 + j, 4, 4);
  append_half(out, scale);
}

void append_tq2_block(std::string& out, const std::int8_t* trits, float scale) {
  for (int half = 0; half < 2; ++half) {
    for (int j = 0; j < 32; ++j) append_two_bits(out, trits + 128 * half + j, 32);
  }
  append_half(out, scale);
}

void append_q2_block(std::string& out, const std::int8_t* trits, float scale) {
  append_half(out, scale);
  for (int j = 0; j < 16; ++j) append_two_bits(out, trits + 4 * j, 1);
}

void append_block(std::string& out, GgufType type, const std::int8_t* trits, float scale) {
  switch (type) {
    case GgufType::kTq1:
      return append_tq1_block(out, trits, scale);
    case GgufType::kTq2:
      return append_tq2_block(out, trits, scale);
    case GgufType::kQ2:
      return append_q2_block(out, trits, scale);
    case GgufType::kF32:
    case GgufType::kF16:
      break;
  }
  fail("export: ", kGgufTypes.name(type), " holds floats, not trits; this is a bug");
}

}  // namespace

const GgufTypeTraits& gguf_traits(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return kF32Traits;
    case GgufType::kF16:
      return kF16Traits;
    case GgufType::kTq1:
      return kTq1Traits;
    case GgufType::kTq2:
      return kTq2Traits;
    case GgufType::kQ2:
      break;
  }
  return kQ2Traits;
}

std::string encode_f32(std::span<const float> numbers) {
  std::string bytes(numbers.size_bytes(), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::string encode_f16(std::span<const float> numbers, const std::string& name) {
  std::string bytes;
  bytes.reserve(2 * numbers.size());
  for (const float x : numbers) {
    check(std::abs(x) <= kMostHalf, "export: '", name, "' has the number ", x,
          ", which fp16 cannot hold; take --type f32");
    append_half(bytes, x);
  }
  return bytes;
}

std::string encode_trits(const InferenceProduct& w, GgufType type) {
  const GgufTypeTraits& traits = gguf_traits(type);
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(traits.bytes_of(w.inputs * w.outputs)));
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    for (std::int64_t i = 0; i < w.inputs; i += traits.block) {
      const float scale = w.scales[static_cast<std::size_t>(o * w.groups() + i / w.group)];
      // Below the half of the smallest number a scale would become 0, and with it its trits.
      check(std::abs(scale) <= kMostHalf && (scale == 0.0f || std::abs(scale) > 0x1p-25f),
            "export: '", w.name, "' has the scale ", scale,
            ", which fp16 cannot hold; take --type f32");
      append_block(bytes, type, w.trits.data() + o * w.inputs + i, scale);
    }
  }
  return bytes;
}

}  // namespace tritgrad
