// A study as the files of one folder, all of which belong to the same runs.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/atomic_file.h"

namespace tritgrad {

// Name and contents; the last one is the page, which speaks of the others.
using StudyFiles = std::vector<std::pair<std::string, std::string>>;

// All of them are on the disk under other names before the first takes its own: a disk that is full
// leaves an older study as it was, and nothing of the new one. A process that is killed while names
// change leaves no page rather than one beside files of other runs.
void write_study(const std::filesystem::path& folder, const StudyFiles& files,
                 const FileCalls& calls = {});

}  // namespace tritgrad
