// The persistent bytes of a model, by category of the ledger.
#pragma once

#include <cstdint>

#include "engine/check.h"
#include "engine/memory/ledger.h"

namespace tritgrad {

template <typename Number>
struct BytesByCategory {
  Number weights = 0;
  Number scales = 0;
  Number residual = 0;
  Number moments = 0;
  Number gradients = 0;  // kept gradients; released ones have no bytes of their own

  Number total() const { return weights + scales + residual + moments + gradients; }

  // Calls body(category, member) for every category, whose name is that of its member.
  template <typename Self, typename Body>
  static void visit(Self& self, const Body& body) {
    body(Category::kWeights, self.weights);
    body(Category::kScales, self.scales);
    body(Category::kResiduals, self.residual);
    body(Category::kMoments, self.moments);
    body(Category::kGradients, self.gradients);
  }

  // Returns the member of a category. Throws Error for one that does not belong to a parameter.
  Number& operator[](Category category) {
    Number* found = nullptr;
    visit(*this, [&](Category each, Number& member) {
      if (each == category) found = &member;
    });
    check(found != nullptr, "category '", category_name(category),
          "' does not belong to a parameter");
    return *found;
  }

  // Returns body(member) of every category.
  template <typename Body>
  auto map(const Body& body) const -> BytesByCategory<decltype(body(weights))> {
    return {body(weights), body(scales), body(residual), body(moments), body(gradients)};
  }

  friend bool operator==(const BytesByCategory&, const BytesByCategory&) = default;
};

// The bytes of a model or of one parameter.
using Footprint = BytesByCategory<std::int64_t>;
// The bytes of a category divided by the number of trained parameters.
using BytesPerParameter = BytesByCategory<double>;

}  // namespace tritgrad
