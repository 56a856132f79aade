// Extents of a row-major array of one to four axes.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "engine/check.h"

namespace tritgrad {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents) {
    check(extents.size() <= kMaxRank, "Shape: ", extents.size(),
          " axes given, at most 4 supported");
    for (std::int64_t extent : extents) {
      check(extent >= 0, "Shape: axis ", rank_, " has negative extent ", extent);
      extents_[static_cast<std::size_t>(rank_++)] = extent;
    }
  }

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }

  // Returns the number of elements; 1 for the empty shape (a scalar).
  std::int64_t size() const {
    std::int64_t product = 1;
    for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
    return product;
  }

  // Read as a matrix: the last axis is the column, all earlier axes together are the row.
  std::int64_t cols() const { return rank_ == 0 ? 1 : (*this)[rank_ - 1]; }
  std::int64_t rows() const {
    std::int64_t product = 1;
    for (int axis = 0; axis + 1 < rank_; ++axis) product *= (*this)[axis];
    return product;
  }

  std::string str() const {
    std::string text = "[";
    for (int axis = 0; axis < rank_; ++axis) {
      if (axis > 0) text += " x ";
      text += std::to_string((*this)[axis]);
    }
    return text + "]";
  }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

}  // namespace tritgrad
