#include "ops/dropout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "engine/kernels/codecs.h"
#include "ops/columns.h"

namespace tritgrad {
namespace {

// out[i] (+)= in[i] * mask[i] * gain
template <bool kAccumulate>
void apply_mask(const Tensor& out, const Tensor& in, std::uint32_t threshold, float gain,
                const RandomKey& key) {
  constexpr std::int64_t kPiece = 1024;  // a multiple of 8: see CodecKernels::random_u16
  parallel_ranges(in.size(), kPiece, [&](std::int64_t begin, std::int64_t end) {
    std::array<std::uint16_t, kPiece> noise;
    std::array<float, kPiece> numbers;  // out may be in, which would keep the loop from vectors
    const std::int64_t n = end - begin;
    kernels().codecs.random_u16(noise.data(), n, key, static_cast<std::uint64_t>(begin));
    std::copy_n(in.data + begin, n, numbers.data());
    float* to = out.data + begin;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      // The choice is made by bits: no processor can guess what chance drops.
      const std::uint32_t kept = 0u - static_cast<std::uint32_t>(noise[i] >= threshold);
      const float masked =
          std::bit_cast<float>(std::bit_cast<std::uint32_t>(numbers[i] * gain) & kept);
      to[i] = kAccumulate ? to[i] + masked : masked;
    }
  });
}

}  // namespace

Var dropout(Tape& tape, const Var& x, float p, const RandomKey& key) {
  check(p >= 0.0f && p < 1.0f, "dropout: p = ", p, " is outside [0, 1)");
  const auto threshold = static_cast<std::uint32_t>(p * 65536.0f);
  const float gain = 65536.0f / static_cast<float>(65536u - threshold);

  const Var y = tape.variable(x.shape(), x.wants_grad());
  apply_mask<false>(y.value, x.value, threshold, gain, key);
  if (!x.wants_grad()) return y;
  tape.record(y, {}, {}, [&tape, x, y, threshold, gain, key] {
    const Tensor dy = tape.grad_of(y);
    const auto [dx, fresh] = tape.target_in_place(x, y);
    fresh ? apply_mask<false>(dx, dy, threshold, gain, key)
          : apply_mask<true>(dx, dy, threshold, gain, key);
  });
  return y;
}

}  // namespace tritgrad
