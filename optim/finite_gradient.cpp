#include "optim/finite_gradient.h"

#include <algorithm>
#include <array>

#include "engine/kernel_table.h"
#include "engine/parallel.h"
#include "optim/rule.h"

namespace tritgrad {

// Read from the end, so that the update, which reads from the start, finds a part in the cache.
bool gradient_is_finite(const Parameter& parameter) {
  if (parameter.gradient_source != nullptr) return parameter.gradient_source->finite;
  constexpr std::int64_t kElementsPerUnit = 32768;
  const std::int64_t size = parameter.shape().size();
  const double bad =
      parallel_sum(size, kElementsPerUnit, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t stop = size - begin;
        const std::int64_t most = parameter.grad ? end - begin : kRun;
        std::array<float, kRun> scratch;
        bool finite = true;
        for (std::int64_t first = size - end; first < stop; first += most) {
          const std::int64_t n = std::min(most, stop - first);
          finite &= kernels().all_finite(parameter.read_gradient(first, n, scratch.data()), n);
        }
        return finite ? 0.0 : 1.0;
      });
  return bad == 0.0;
}

}  // namespace tritgrad
