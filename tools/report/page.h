// A page as a list of blocks, and the two ways of writing it down. Text is plain; each writer
// escapes it for its own language.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tritgrad {

struct Heading {
  int level = 2;  // 2 or 3; the title of the page is 1
  std::string text;
};

struct Paragraph {
  std::string text;
  bool lead = false;  // set apart: the finding
};

struct Bullets {
  std::vector<std::string> items;
};

// Facts are names with what there is to say of each.
struct Facts {
  std::vector<std::pair<std::string, std::string>> entries;
  bool glossary = false;  // terms and their meaning, rather than short facts
};

struct Code {
  std::string text;
};

struct PageTable {
  std::vector<std::string> heads;              // the first column names the row
  std::vector<std::vector<std::string>> rows;  // as many cells as heads
  std::string emphasised;                      // first cell of the rows to stand out; empty: none
  std::string folded;                          // opens on a click on these words; empty: open
};

struct Figure {
  std::string name;  // of its file, if it gets one: letters, digits and hyphens
  std::string caption;
  std::string svg;
};

struct Pictures {
  std::vector<Figure> figures;
};

using PageBlock = std::variant<Heading, Paragraph, Bullets, Facts, Code, PageTable, Pictures>;

struct Page {
  std::string title;
  std::vector<PageBlock> blocks;
};

// Returns a page that needs nothing but itself: no network, no scripts.
std::string render_html(const Page& page);

// Returns GitHub's Markdown. Pictures are links to FOLDER/<name of the figure>.svg; the names of a
// page's figures differ.
std::string render_markdown(const Page& page, const std::string& folder);

// NAME.md is written as Markdown, with its pictures in the folder NAME beside it; NAME.html as a
// page that needs nothing else. Files that are there are replaced. Throws Error when one cannot be
// written.
void write_page(const std::string& path, const Page& page);

// Refuses what write_page() could not write, before any work is done for it; "" is no page. The
// message begins with --report, the option that names the file.
void check_report_path(const std::string& path);

// The folder of the pictures, where the page has one. It is made at once: what may fail shall fail
// before any work is done for it. One that was made and stays empty goes with the object.
class PictureFolder {
 public:
  explicit PictureFolder(const std::string& path);
  ~PictureFolder();
  PictureFolder(const PictureFolder&) = delete;
  PictureFolder& operator=(const PictureFolder&) = delete;

 private:
  std::filesystem::path made_;  // empty: none was
};

// Returns an HTML element of nothing but text, on a line of its own. `attributes` is "" or markup
// that begins with a space.
std::string element(const char* tag, std::string_view text, const char* attributes = "");

// Returns the style sheet of HTML pages as a <style> element.
std::string page_style();

}  // namespace tritgrad
