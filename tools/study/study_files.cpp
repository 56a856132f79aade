#include "tools/study/study_files.h"

#include <deque>
#include <span>

namespace tritgrad {

void write_study(const std::filesystem::path& folder, const StudyFiles& files,
                 const FileCalls& calls) {
  std::deque<AtomicFile> written;
  for (const auto& [name, text] : files) {
    written.emplace_back(folder / name, calls).write(std::as_bytes(std::span(text)));
  }
  for (AtomicFile& file : written) file.sync();
  // Where the page is a link, what it names goes, and comes again in its place.
  std::error_code error;
  std::filesystem::remove(std::filesystem::weakly_canonical(folder / files.back().first), error);
  for (AtomicFile& file : written) file.commit();
}

}  // namespace tritgrad
