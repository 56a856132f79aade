// The numbers in a buffer of floats.
#pragma once

#include <span>

#include "engine/memory/buffer.h"

namespace tritgrad {

inline std::span<float> floats_of(const Buffer& buffer) {
  return {buffer.as<float>(), buffer.size() / sizeof(float)};
}

}  // namespace tritgrad
