#include "tools/bench/update_stream.h"

#include "engine/kernels/updates.h"
#include "engine/memory/parallel.h"

namespace tritgrad {

UpdateStream::UpdateStream()
    : w_(kElements * sizeof(float), Category::kWorkspace),
      g_(kElements * sizeof(float), Category::kWorkspace) {
  // Every page is written once: memory that was never touched is one page of zeros, in a cache.
  parallel_ranges(kElements, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    std::fill(w_.as<float>() + begin, w_.as<float>() + end, 1.0f);
    std::fill(g_.as<float>() + begin, g_.as<float>() + end, 1e-3f);
  });
}

void UpdateStream::run() const {
  parallel_ranges(kElements, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    kernels().updates.descend(w_.as<float>() + begin, g_.as<float>() + begin, 1e-3f, end - begin);
  });
}

}  // namespace tritgrad
