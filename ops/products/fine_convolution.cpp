#include "ops/products/fine_convolution.h"

#include <algorithm>

#include "engine/check.h"
#include "engine/memory/parallel.h"

namespace tritgrad {
namespace {

constexpr std::int64_t kJoinedPixels = 4096;  // whose sums are worth a thread

// Returns the sums of both codes in each pixel's window, in scratch.
const std::int32_t* sum_fine_windows(Tape& tape, const FineImages& x) {
  std::int32_t* sums = sum_windows(tape, x.high);
  const std::int32_t* low = sum_windows(tape, x.low);
  parallel_ranges(x.high.rows(), kJoinedPixels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sums[i] = kFiner * sums[i] + low[i];
  });
  return sums;
}

// Makes the sums of a stretch, pixels kPanelColumns apart.
void multiply_finely(const FineImages& x, const WindowPanels& w, const WindowSums& s,
                     std::int32_t* sums) {
  multiply_stretch(x.high, w, s, sums, /*add=*/false);
  for (std::int64_t pixel = 0; pixel < s.pixels; ++pixel) {
    std::int32_t* row = sums + pixel * kPanelColumns;
    for (std::int64_t i = 0; i < s.n; ++i) row[i] *= kFiner;
  }
  multiply_stretch(x.low, w, s, sums, /*add=*/true);
}

// Makes the levels of one image; `sums` has room for the sums of all its stretches.
void convolve_image(const FineImages& x, const WindowPanels& w, std::int64_t index,
                    const std::int32_t* corrections, std::int32_t* sums, const ImageLevels& out) {
  std::int32_t largest = 0, *next = sums;
  for_each_stretch(x.high.image, w, index, corrections, [&](const WindowSums& s) {
    multiply_finely(x, w, s, next);
    largest = std::max(
        largest, kernels().products.largest_sum(next, kPanelColumns, s.corrections, s.pixels, s.n));
    next += s.pixels * kPanelColumns;
  });
  const int shift = shift_for(1, largest);
  out.factors[index] =
      x.high.scales[index] / static_cast<float>(kFiner) * static_cast<float>(1 << shift);
  start_range(out, index);
  for_each_stretch(x.high.image, w, index, corrections, [&](WindowSums s) {
    s.sums = sums;
    narrow_stretch(out, s, shift);
    sums += s.pixels * kPanelColumns;
  });
}

}  // namespace

void convolve_finely(Tape& tape, const FineImages& x, const WindowPanels& w, ImageLevels out) {
  check(w.size * w.depth() <= kLongestFineSum, "convolve_finely: windows have ", w.size * w.depth(),
        " numbers; at most ", kLongestFineSum, " expected");
  const std::int32_t* corrections = sum_fine_windows(tape, x);
  const std::int64_t images = x.high.images;
  const std::int64_t sums_of_image = x.high.image.pixels() * round_up(w.outputs, kPanelColumns);
  const std::int64_t shares = std::min<std::int64_t>(thread_count(), images);
  auto* sums = tape.allocate_scratch<std::int32_t>(shares * sums_of_image);
  parallel_for(shares, [&](std::int64_t share) {
    for (std::int64_t i = images * share / shares; i < images * (share + 1) / shares; ++i) {
      convolve_image(x, w, i, corrections, sums + share * sums_of_image, out);
    }
  });
}

}  // namespace tritgrad
