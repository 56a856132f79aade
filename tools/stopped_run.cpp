#include "tools/stopped_run.h"

#include "engine/check.h"
#include "tools/cli/shell_quoted.h"

namespace tritgrad {

void check_stop(const TrainOptions& options, std::int64_t steps_done) {
  check(options.stop_after == 0 || options.stop_after > steps_done, "--stop-after ",
        options.stop_after, ": the checkpoint '", options.resume, "' has ", steps_done,
        " steps already; leave the option out or name a later step");
}

std::string what_was_saved(const TrainOptions& options) {
  if (options.folds > 0) return "nothing was saved";
  if (options.save.empty()) return "nothing was saved, as --save was not given";
  std::string go_on = "tritgrad train --resume " + shell_quoted(options.save);
  if (options.save_every > 0) go_on += concat(" --save-every ", options.save_every);
  if (!options.log.empty()) go_on += " --log " + shell_quoted(options.log);
  if (!options.cache.empty()) go_on += " --cache " + shell_quoted(options.cache);
  return "saved; to go on: " + go_on;
}

Interrupted interruption(const TrainOptions& options, std::int64_t done, std::int64_t total) {
  return Interrupted(
      concat("interrupted after step ", done, " of ", total, "; ", what_was_saved(options)));
}

void begin_unless_interrupted(const TrainOptions& options) {
  if (options.ranks != nullptr) return;  // they would wait for the one that stopped
  if (InterruptWatch().interrupted()) {
    throw Interrupted("interrupted before the first step of a run; nothing was saved of it");
  }
}

}  // namespace tritgrad
