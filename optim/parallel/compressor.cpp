#include "optim/parallel/compressor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/kernel_table.h"

namespace tritgrad {
namespace {

constexpr int kTopCode = 127;

bool is_used(const std::uint8_t* used, std::int64_t i) { return used == nullptr || used[i] != 0; }

std::int64_t groups_of(std::int64_t n) { return (n + kCompandedGroup - 1) / kCompandedGroup; }

float scale_of(Compression compression, const float* x, std::int64_t n, const std::uint8_t* used) {
  double sum = 0.0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (!is_used(used, i)) continue;
    const double value = double{x[i]};
    sum += compression == Compression::kSign ? std::abs(value) : value * value;
    ++count;
  }
  if (count == 0) return 0.0f;
  const double mean = sum / static_cast<double>(count);
  return static_cast<float>(compression == Compression::kSign ? mean : std::sqrt(mean));
}

// scale | bits, the lowest first, 1 = negative
void compress_signs(Compression compression, float* x, std::int64_t n, const std::uint8_t* used,
                    std::byte* out) {
  const float scale = scale_of(compression, x, n, used);
  std::memcpy(out, &scale, sizeof(scale));
  std::byte* bits = out + sizeof(scale);
  for (std::int64_t first = 0; first < n; first += 8) {
    unsigned byte = 0;
    for (std::int64_t i = first; i < std::min(n, first + 8); ++i) {
      if (!is_used(used, i)) continue;
      const bool negative = x[i] < 0.0f;
      byte |= (negative ? 1u : 0u) << (i - first);
      x[i] -= negative ? -scale : scale;
    }
    bits[first / 8] = static_cast<std::byte>(byte);
  }
}

void decompress_signs(const std::byte* in, std::int64_t n, const std::uint8_t* used, float* out) {
  float scale;
  std::memcpy(&scale, in, sizeof(scale));
  const std::byte* bits = in + sizeof(scale);
  for (std::int64_t i = 0; i < n; ++i) {
    const bool negative = (std::to_integer<unsigned>(bits[i / 8]) >> (i % 8) & 1u) != 0;
    out[i] = is_used(used, i) ? (negative ? -scale : scale) : 0.0f;
  }
}

}  // namespace

std::int64_t compressed_bytes(Compression compression, std::int64_t n) {
  if (n == 0) return 0;
  if (compression == Compression::kInt8) {
    return n + static_cast<std::int64_t>(sizeof(std::uint16_t)) * groups_of(n);
  }
  return static_cast<std::int64_t>(sizeof(float)) + (n + 7) / 8;
}

// int8: scales | codes
void decompress(Compression compression, const std::byte* in, std::int64_t n,
                const std::uint8_t* used, float* out) {
  if (n == 0) return;
  if (compression != Compression::kInt8) return decompress_signs(in, n, used, out);
  // Messages begin at any byte; scales want even ones.
  std::vector<std::uint16_t> scales(static_cast<std::size_t>(groups_of(n)));
  const std::size_t bytes = scales.size() * sizeof(std::uint16_t);
  std::memcpy(scales.data(), in, bytes);
  kernels().decode_groups(out, reinterpret_cast<const std::int8_t*>(in + bytes), scales.data(),
                          kTopCode, n);
}

void compress(Compression compression, float* x, std::int64_t n, const std::uint8_t* used,
              std::byte* out) {
  if (n == 0) return;
  if (compression != Compression::kInt8) return compress_signs(compression, x, n, used, out);
  std::vector<std::uint16_t> scales(static_cast<std::size_t>(groups_of(n)));
  const std::size_t bytes = scales.size() * sizeof(std::uint16_t);
  auto* codes = reinterpret_cast<std::int8_t*>(out + bytes);
  kernels().encode_groups(codes, scales.data(), x, kTopCode, nullptr, n);
  std::memcpy(out, scales.data(), bytes);
  std::vector<float> decoded(static_cast<std::size_t>(n));
  kernels().decode_groups(decoded.data(), codes, scales.data(), kTopCode, n);
  kernels().add_scaled(x, decoded.data(), -1.0f, n);
}

}  // namespace tritgrad
