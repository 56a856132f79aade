#include "tools/cli/complain.h"

#include <cstdio>

#include "engine/text.h"
#include "optim/parallel/communicator.h"

namespace tritgrad {

int complain(const std::string& sentence) {
  std::string line = "tritgrad: ";
  if (launched_ranks() > 1) line += "rank " + std::to_string(launched_rank()) + ": ";
  line += printable(sentence) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  return 1;
}

void warn_of_recipe(const std::string& name, const std::string& sentence) {
  const std::string line = "warning: recipe '" + name + "': " + printable(sentence) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace tritgrad
