#include "tools/report/page_file.h"

#include <filesystem>
#include <set>
#include <span>
#include <string_view>

#include "engine/check.h"
#include "engine/files/atomic_file.h"
#include "engine/text.h"
#include "tools/cli/output_file.h"

namespace tritgrad {
namespace {

bool is_markdown(const std::filesystem::path& path) { return path.extension() == ".md"; }

std::filesystem::path folder_of_pictures(std::filesystem::path path) {
  return path.replace_extension();
}

// As pages name theirs: a number, a minus sign, what it shows.
bool is_picture(std::string_view name) {
  const std::size_t digits = name.find_first_not_of("0123456789");
  return digits != 0 && digits != name.npos && name[digits] == '-' && name.ends_with(".svg");
}

// Pictures of an earlier page, which may have had other data sets in other places.
void remove_other_pictures(const std::filesystem::path& folder, const std::set<std::string>& kept) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    std::error_code error;  // who may not delete them keeps files too many
    if (!kept.contains(name) && is_picture(name)) {
      std::filesystem::remove(entry.path(), error);
    }
  }
}

}  // namespace

void check_report_path(const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path file = path;
  const std::string stem = file.stem().string();
  check((file.extension() == ".html" || is_markdown(file)) && stem != "." && stem != "..",
        "--report: '", path, "' found, NAME.html or NAME.md expected");
  OutputFile("--report", path, is_markdown(file) ? kMarkdownBegins : kHtmlBegins);
  if (!is_markdown(file)) return;
  const std::filesystem::path folder = folder_of_pictures(file);
  check(!std::filesystem::exists(folder) || std::filesystem::is_directory(folder), "--report: '",
        folder.string(), "' is a file, but the pictures of '", path,
        "' need a folder of that name; choose another name");
}

void make_picture_folder(const std::string& path) {
  if (!is_markdown(path)) return;
  const std::filesystem::path folder = folder_of_pictures(path);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check(!error, "the folder '", folder.string(), "' of the pictures cannot be made (",
        error.message(), ")");
  OutputFile("--report", (folder / "picture.svg").string(), kHtmlBegins);
}

void write_page(const std::string& path, const Page& page) {
  if (!is_markdown(path)) {
    const std::string html = as_utf8(render_html(page));
    replace_file(path, std::as_bytes(std::span(html)));
    return;
  }
  make_picture_folder(path);
  const std::filesystem::path folder = folder_of_pictures(path);
  std::set<std::string> written;
  for (const PageBlock& block : page.blocks) {
    const auto* pictures = std::get_if<Pictures>(&block);
    if (pictures == nullptr) continue;
    for (const Figure& figure : pictures->figures) {
      replace_file(folder / (figure.name + ".svg"), std::as_bytes(std::span(figure.svg)));
      written.insert(figure.name + ".svg");
    }
  }
  remove_other_pictures(folder, written);
  const std::string markdown = as_utf8(render_markdown(page, folder.filename().string()));
  replace_file(path, std::as_bytes(std::span(markdown)));
}

}  // namespace tritgrad
