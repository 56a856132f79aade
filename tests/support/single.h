// One parameter "w" and the optimizer that trains it, for tests of rules and formats.
#pragma once

#include <memory>
#include <vector>

#include "engine/lazy_gradient.h"
#include "optim/optimizer.h"
#include "tests/support/support.h"

namespace tritgrad::test {

inline FormatSpec format(FormatKind kind, Rounding rounding = Rounding::kStochastic) {
  FormatSpec spec;
  spec.kind = kind;
  spec.rounding = rounding;
  return spec;
}

struct Single {
  ParameterStore store;
  std::unique_ptr<Optimizer> optimizer;

  Single(const Shape& shape, const FormatSpec& spec, const GroupSpec& group,
         std::int64_t total = 1000, NonFinite non_finite = NonFinite::kRefuse,
         FormatKind gradient = FormatKind::kFp32) {
    store.add({"w", Role::kWeight, shape, spec, {Initial::Kind::kUniform, 1.0f}}, 1);
    store.keep_gradients(gradient);
    optimizer = std::make_unique<Optimizer>(
        store, [&](const ParameterSpec&) { return group; }, total, 5, non_finite);
  }
  Parameter& w() { return store.find("w"); }

  std::vector<std::byte> state() {
    std::vector<std::byte> bytes;
    for (const NamedArray& plane : optimizer->state()) {
      bytes.insert(bytes.end(), plane.bytes.begin(), plane.bytes.end());
    }
    return bytes;
  }
  // The state plane of that name, as numbers of type T.
  template <typename T>
  std::span<T> plane(const std::string& name) {
    for (const NamedArray& plane : optimizer->state()) {
      if (plane.name != name) continue;
      return {reinterpret_cast<T*>(plane.bytes.data()), plane.bytes.size() / sizeof(T)};
    }
    fail("no state plane named ", name);
  }

  void step(std::vector<float> grad) {
    if (w().grad) {
      std::copy(grad.begin(), grad.end(), w().grad.data);
    } else {  // kept in bf16
      w().grad = {grad.data(), w().shape()};
      w().collect_gradient();
      w().grad = {};
    }
    optimizer->step();
    optimizer->advance();
  }
};

// A gradient in memory as a source, which it must outlive.
struct Copied {
  LazyGradient source() const {
    return {[](const void* context, std::int64_t row_begin, std::int64_t row_end,
               std::int64_t col_begin, std::int64_t col_end, float* out, const PrefetchList&) {
              const auto* self = static_cast<const Copied*>(context);
              for (std::int64_t row = row_begin; row < row_end; ++row) {
                const float* from = self->grad.data() + row * self->cols;
                out = std::copy(from + col_begin, from + col_end, out);
              }
            },
            this, true};
  }

  std::vector<float> grad;
  std::int64_t cols;
};

}  // namespace tritgrad::test
