// What a user of the installed library writes: one mean of random numbers, summed in parallel.
#include <cstdio>

#include "engine/buffer.h"
#include "engine/parallel.h"
#include "engine/random.h"

int main() {
  using namespace tritgrad;
  constexpr std::int64_t kCount = 1 << 16;
  const Buffer buffer(kCount * sizeof(float), Category::kData);
  float* values = buffer.as<float>();
  const RandomKey key{.seed = 1, .stream = random_stream("consumer")};
  const double sum = parallel_sum(kCount, 1024, [&](std::int64_t begin, std::int64_t end) {
    double part = 0.0;
    for (std::int64_t i = begin; i < end; ++i) {
      values[i] = random_uniform(key, static_cast<std::uint64_t>(i));
      part += values[i];
    }
    return part;
  });
  const double mean = sum / kCount;
  std::printf("mean %.4f\n", mean);
  // The mean of n uniform numbers deviates by sqrt(1 / 12 n) = 0.0011; 0.01 is nine of those.
  return mean > 0.49 && mean < 0.51 ? 0 : 1;
}
