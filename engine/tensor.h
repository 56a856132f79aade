// A view of fp32 values in row-major order. It owns nothing: the memory belongs to an arena, a
// buffer or the caller. Activations and gradients are tensors; parameters have formats
// (engine/formats/storage.h).
#pragma once

#include <algorithm>
#include <span>

#include "engine/shape.h"

namespace tritgrad {

struct Tensor {
  float* data = nullptr;
  Shape shape;

  std::int64_t size() const { return shape.size(); }
  std::int64_t rows() const { return shape.rows(); }
  std::int64_t cols() const { return shape.cols(); }
  float* row(std::int64_t i) const { return data + i * cols(); }
  std::span<float> values() const { return {data, static_cast<std::size_t>(size())}; }
  void fill(float value) const { std::fill_n(data, size(), value); }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace tritgrad
