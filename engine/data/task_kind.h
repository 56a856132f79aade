// What the labels of data are: names of classes, or numbers that a model is to predict.
#pragma once

#include <string_view>

#include "engine/names.h"

namespace tritgrad {

enum class TaskKind {
  kAuto,      // numbers that look measured are predicted, see look_measured(); else classes
  kClassify,  // distinct labels are classes, numbers too
  kRegress,   // labels are numbers
};

inline constexpr Names<TaskKind, 3> kTaskKinds = {"value of --task",
                                                  {{{TaskKind::kAuto, "auto"},
                                                    {TaskKind::kClassify, "classify"},
                                                    {TaskKind::kRegress, "regress"}}}};

inline std::string_view to_text(TaskKind task) { return kTaskKinds.name(task); }
inline TaskKind parse_task(std::string_view text) { return kTaskKinds.parse(text); }

}  // namespace tritgrad
