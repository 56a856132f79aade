// A parameter and its optimizer, saved in a file and loaded from it.
#pragma once

#include <string>
#include <vector>

#include "engine/files/checkpoint.h"
#include "tests/support/single.h"
#include "tests/support/support_files.h"

namespace tritgrad::test {

inline std::vector<NamedArray> planes_of(Single& single) {
  std::vector<NamedArray> planes = parameter_planes(single.store);
  for (const NamedArray& plane : single.optimizer->state()) planes.push_back(plane);
  return planes;
}

// `resumed` goes on where `single` is.
inline void save_and_load(Single& single, Single& resumed) {
  const TempDir folder;
  const std::string path = (folder / "saved.safetensors").string();
  save_checkpoint(path, {}, planes_of(single));
  load_checkpoint(open_checkpoint(path), planes_of(resumed));
  resumed.optimizer->resume_at(single.optimizer->steps_done());
}

}  // namespace tritgrad::test
