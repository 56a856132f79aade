#include "tools/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "engine/check.h"
#include "engine/files/atomic_file.h"
#include "engine/text.h"
#include "tools/cli/output_file.h"
#include "tools/report/svg.h"

namespace tritgrad {
namespace {

namespace fs = std::filesystem;

// The first cell of a row of the body names the row.
std::string table_row(const std::vector<std::string>& cells, bool head, bool emphasised) {
  std::string html = emphasised ? "<tr class=\"baseline\">\n" : "<tr>\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (head) {
      html += element("th", cells[i], " scope=\"col\"");
    } else {
      html += i == 0 ? element("th", cells[i], " scope=\"row\"") : element("td", cells[i]);
    }
  }
  return html + "</tr>\n";
}

struct HtmlWriter {
  std::string html = {};

  void operator()(const Heading& heading) {
    html += element(heading.level == 2 ? "h2" : "h3", heading.text);
  }
  void operator()(const Paragraph& paragraph) {
    html += element("p", paragraph.text, paragraph.lead ? " class=\"lead\"" : "");
  }
  void operator()(const Bullets& bullets) {
    html += "<ul>\n";
    for (const std::string& item : bullets.items) html += element("li", item);
    html += "</ul>\n";
  }
  void operator()(const Facts& facts) {
    html += facts.glossary ? "<dl class=\"definitions\">\n" : "<dl class=\"facts\">\n";
    for (const auto& [name, text] : facts.entries) {
      const std::string entry = element("dt", name) + element("dd", text);
      html += facts.glossary ? entry : "<div>\n" + entry + "</div>\n";
    }
    html += "</dl>\n";
  }
  void operator()(const Code& code) {
    html += "<pre><code>" + escape_markup(code.text) + "</code></pre>\n";
  }
  void operator()(const PageTable& table) {
    if (!table.folded.empty()) html += "<details>\n" + element("summary", table.folded);
    html += "<div class=\"scroll\"><table>\n<thead>\n" + table_row(table.heads, true, false) +
            "</thead>\n<tbody>\n";
    for (const std::vector<std::string>& row : table.rows) {
      html += table_row(row, false, row.front() == table.emphasised);
    }
    html += "</tbody>\n</table></div>\n";
    if (!table.folded.empty()) html += "</details>\n";
  }
  void operator()(const Pictures& pictures) {
    html += "<div class=\"figures\">\n";
    for (const Figure& figure : pictures.figures) {
      html += "<figure>\n" + figure.svg + element("figcaption", figure.caption) + "</figure>\n";
    }
    html += "</div>\n";
  }
};

// Escapes the characters that would begin markup inside a line, markup of HTML included. Quotes
// stay as they are, and so does '>' where it does not begin a quotation.
std::string escape_markdown(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += ' ';
    } else if (c == '"' || c == '\'' || (c == '>' && !escaped.empty())) {
      escaped += c;
    } else if (std::string_view("\\`*_|[]~").find(c) != std::string_view::npos) {
      escaped += {'\\', c};
    } else {
      escaped += escape_markup({&c, 1});
    }
  }
  return escaped;
}

struct MarkdownWriter {
  std::string folder;
  std::string text = {};

  void operator()(const Heading& heading) {
    text += (heading.level == 2 ? "## " : "### ") + escape_markdown(heading.text) + "\n\n";
  }
  void operator()(const Paragraph& paragraph) {
    text += (paragraph.lead ? "> " : "") + escape_markdown(paragraph.text) + "\n\n";
  }
  // Bullets have another mark than facts, so that the two are two lists where they meet.
  void operator()(const Bullets& bullets) {
    for (const std::string& item : bullets.items) text += "* " + escape_markdown(item) + "\n";
    text += "\n";
  }
  void operator()(const Facts& facts) {
    for (const auto& [name, value] : facts.entries) {
      text += "- **" + escape_markdown(name) + "**: " + escape_markdown(value) + "\n";
    }
    text += "\n";
  }
  // Code is fenced by more backticks than it holds in a row, so that nothing in it can end it.
  void operator()(const Code& code) {
    std::string fence = "```";
    while (code.text.find(fence) != std::string::npos) fence += '`';
    text += fence + "\n" + code.text + "\n" + fence + "\n\n";
  }
  void operator()(const PageTable& table) {
    if (!table.folded.empty()) {
      text += "<details><summary>" + escape_markup(table.folded) + "</summary>\n\n";
    }
    add_row(table.heads, false);
    text += "|:---|";
    for (std::size_t i = 1; i < table.heads.size(); ++i) text += "---:|";
    text += "\n";
    for (const std::vector<std::string>& row : table.rows) {
      add_row(row, row.front() == table.emphasised);
    }
    text += table.folded.empty() ? "\n" : "\n</details>\n\n";
  }
  void operator()(const Pictures& pictures) {
    for (const Figure& figure : pictures.figures) {
      text += fmt::format("<img src=\"{}/{}.svg\" width=\"640\" alt=\"{}\"/>\n\n*{}*\n\n",
                          escape_markup(folder), figure.name, escape_markup(figure.caption),
                          escape_markdown(figure.caption));
    }
  }

  void add_row(const std::vector<std::string>& cells, bool bold) {
    const std::string mark = bold ? "**" : "";
    text += "| " + mark + escape_markdown(cells.front()) + mark + " |";
    for (std::size_t i = 1; i < cells.size(); ++i) text += " " + escape_markdown(cells[i]) + " |";
    text += "\n";
  }
};

bool is_markdown(const fs::path& path) { return path.extension() == ".md"; }

fs::path picture_folder(fs::path path) { return path.replace_extension(); }

// Removes the pictures of an earlier page, which may have had other data sets in other places.
// Their names are those that pages give: a number, a hyphen, what the picture shows.
void remove_other_pictures(const fs::path& folder, const std::set<std::string>& kept) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const std::size_t digits = name.find_first_not_of("0123456789");
    const bool picture =
        digits != 0 && digits != name.npos && name[digits] == '-' && name.ends_with(".svg");
    std::error_code error;  // who may not delete them keeps files too many
    if (picture && !kept.contains(name)) fs::remove(entry.path(), error);
  }
}

void replace_text(const fs::path& path, const std::string& text) {
  const std::string valid = as_utf8(text);
  replace_file(path, std::as_bytes(std::span(valid)));
}

}  // namespace

std::string render_html(const Page& page) {
  HtmlWriter writer;
  for (const PageBlock& block : page.blocks) std::visit(writer, block);
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<meta name=\"color-scheme\" content=\"light dark\"/>\n" +
         element("title", page.title) + page_style() + "</head>\n<body>\n<main>\n" +
         element("h1", page.title) + writer.html + "</main>\n</body>\n</html>\n";
}

std::string render_markdown(const Page& page, const std::string& folder) {
  MarkdownWriter writer{folder};
  for (const PageBlock& block : page.blocks) std::visit(writer, block);
  // One empty line at the end of a block is enough at the end of the page.
  if (writer.text.ends_with("\n\n")) writer.text.pop_back();
  return "# " + escape_markdown(page.title) + "\n\n" + writer.text;
}

void write_page(const std::string& path, const Page& page) {
  if (!is_markdown(path)) return replace_text(path, render_html(page));
  const PictureFolder pictures_are_there(path);
  const fs::path folder = picture_folder(path);
  std::set<std::string> written;
  for (const PageBlock& block : page.blocks) {
    const auto* pictures = std::get_if<Pictures>(&block);
    if (pictures == nullptr) continue;
    for (const Figure& figure : pictures->figures) {
      replace_text(folder / (figure.name + ".svg"), figure.svg);
      written.insert(figure.name + ".svg");
    }
  }
  remove_other_pictures(folder, written);
  replace_text(path, render_markdown(page, folder.filename().string()));
}

void check_report_path(const std::string& path) {
  if (path.empty()) return;
  const fs::path file = path;
  const std::string stem = file.stem().string();
  check((file.extension() == ".html" || is_markdown(file)) && stem != "." && stem != "..",
        "--report: '", path, "' found, NAME.html or NAME.md expected");
  check_output("--report", path, is_markdown(file) ? kMarkdownBegins : kHtmlBegins);
  if (!is_markdown(file)) return;
  const fs::path folder = picture_folder(file);
  check(!fs::exists(folder) || fs::is_directory(folder), "--report: '", folder.string(),
        "' is a file, but the pictures of '", path,
        "' need a folder of that name; choose another name");
}

PictureFolder::PictureFolder(const std::string& path) {
  if (!is_markdown(path)) return;
  const fs::path folder = picture_folder(path);
  std::error_code error;
  const bool is_new = fs::create_directories(folder, error);
  check(!error, "the folder '", folder.string(), "' of the pictures cannot be made (",
        error.message(), ")");
  try {
    check_output("--report", (folder / "picture.svg").string(), kHtmlBegins);
  } catch (const Error&) {
    if (is_new) fs::remove(folder, error);
    throw;
  }
  if (is_new) made_ = folder;
}

// Only an empty folder can be removed.
PictureFolder::~PictureFolder() {
  std::error_code error;
  if (!made_.empty()) fs::remove(made_, error);
}

std::string element(const char* tag, std::string_view text, const char* attributes) {
  return fmt::format("<{0}{1}>{2}</{0}>\n", tag, attributes, escape_markup(text));
}

std::string page_style() {
  return R"(<style>
:root{--ink:#1b1f24;--soft:#59636e;--line:#d5dae0;--paper:#fff;--raised:#f5f7f9;--accent:#0072b2}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:76rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .75rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.5rem 0 .75rem}
.lead{font-size:1.2rem;line-height:1.5;margin:0 0 1.25rem;max-width:56rem;border-left:4px solid var(--accent);padding-left:1rem;overflow-wrap:anywhere}
.facts{margin:0;color:var(--soft);font-size:.9rem}
.facts div{display:flex;gap:.75rem}
.facts dt{flex:0 0 4.5rem}
.facts dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.85rem;font-variant-numeric:tabular-nums;line-height:1.3}
th,td{padding:.4rem .55rem;text-align:right;white-space:nowrap;vertical-align:bottom}
thead th{color:var(--soft);font-weight:500;white-space:normal}
thead{border-bottom:1.5px solid var(--ink)}
tbody tr{border-bottom:1px solid var(--line)}
th:first-child{text-align:left}
tbody th{position:sticky;left:0;background:var(--paper);font-weight:600}
.baseline th,.baseline td{background:var(--raised)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));gap:2rem 2.5rem}
figure{margin:0;break-inside:avoid}
figcaption{color:var(--soft);font-size:.85rem;margin-top:.25rem}
pre{background:var(--raised);padding:.75rem 1rem;border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere;font:.85rem/1.5 ui-monospace,"DejaVu Sans Mono",monospace}
pre code{font:inherit}
.definitions{display:grid;grid-template-columns:minmax(7rem,max-content) 1fr;gap:.3rem 1.25rem;font-size:.9rem;max-width:56rem}
.definitions dt{font-weight:600}
.definitions dd{margin:0}
details{margin-top:2.5rem}
summary{cursor:pointer;font-size:1.15rem;font-weight:700}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--line:#30363d;--paper:#0f1419;--raised:#1a2129;--accent:#4fa8e0}}
@media (max-width:34rem){.definitions{grid-template-columns:1fr;gap:0}.definitions dd{margin-bottom:.6rem}}
@media print{:root,body{font-size:10pt}main{max-width:none;padding:0}table{font-size:7pt}th,td{padding:.2rem .3rem}.scroll{overflow:visible}.figures{grid-template-columns:1fr 1fr;gap:1rem}details::details-content{content-visibility:visible;block-size:auto}tr{break-inside:avoid}h2{break-after:avoid}}
</style>
)";
}

}  // namespace tritgrad
