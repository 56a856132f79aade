// A loss whose gradient is chosen, so that what an op does with it can be told apart from the loss.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/tape.h"

namespace tritgrad::test {

// backward() from the result gives y the gradient dy, which must outlive it.
inline Var loss_with_gradient(Tape& tape, const Var& y, const std::vector<float>& dy) {
  const Var loss = tape.variable({1});
  tape.record(loss, {}, {},
              [&tape, &dy, y] { std::copy(dy.begin(), dy.end(), tape.target(y).grad.data); });
  return loss;
}

}  // namespace tritgrad::test
