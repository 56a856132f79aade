#include "optim/finite_gradient.h"

#include "engine/memory/parallel.h"

namespace tritgrad {

// Read from the end, so that the update, which reads from the start, finds a part in the cache.
bool gradient_is_finite(const Parameter& parameter) {
  if (parameter.gradient_source != nullptr) return parameter.gradient_source->finite;
  if (parameter.gradient_is_known_finite()) return true;
  constexpr std::int64_t kFiniteUnit = 32768;
  const std::int64_t size = parameter.shape().size();
  const double bad = parallel_sum(size, kFiniteUnit, [&](std::int64_t begin, std::int64_t end) {
    return parameter.gradient_is_finite(size - end, end - begin) ? 0.0 : 1.0;
  });
  return bad == 0.0;
}

}  // namespace tritgrad
