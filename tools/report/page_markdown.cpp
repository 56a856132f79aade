#include <fmt/format.h>

#include <algorithm>

#include "tools/report/markup.h"
#include "tools/report/page.h"

namespace tritgrad {
namespace {

// Characters that would begin markup inside a line; markup of HTML included. Quotes stay as they
// are, and so does '>' where it does not begin a quotation.
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

std::string line_of(const std::vector<std::string>& cells, bool bold_first) {
  std::string line = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = escape_markdown(cells[i]);
    line += i == 0 && bold_first ? " **" + cell + "** |" : " " + cell + " |";
  }
  return line + "\n";
}

std::size_t longest_run(const std::string& text, char wanted) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) {
    run = c == wanted ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

struct MarkdownWriter {
  std::string folder;
  std::string text;

  void operator()(const Heading& heading) {
    text += (heading.level == 2 ? "## " : "### ") + escape_markdown(heading.text) + "\n\n";
  }
  void operator()(const Paragraph& paragraph) {
    const std::string line = escape_markdown(paragraph.text);
    text += (paragraph.lead ? "> " + line : line) + "\n\n";
  }
  // Another mark than that of facts, so that the two are two lists where they meet.
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
  // Fenced by more backticks than it holds in a row, so that nothing in it can end it.
  void operator()(const Code& code) {
    const std::string fence(std::max<std::size_t>(3, longest_run(code.text, '`') + 1), '`');
    text += fence + "\n" + code.text + "\n" + fence + "\n\n";
  }
  void operator()(const PageTable& table) {
    if (!table.folded.empty()) {
      text += "<details><summary>" + escape_markup(table.folded) + "</summary>\n\n";
    }
    text += line_of(table.heads, false) + "|:---|";
    for (std::size_t i = 1; i < table.heads.size(); ++i) text += "---:|";
    text += "\n";
    for (const std::vector<std::string>& row : table.rows) {
      text += line_of(row, row.front() == table.emphasised);
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
};

}  // namespace

std::string render_markdown(const Page& page, const std::string& folder) {
  MarkdownWriter writer{folder, ""};
  for (const PageBlock& block : page.blocks) std::visit(writer, block);
  // One empty line at the end of a block is enough at the end of the page.
  if (writer.text.ends_with("\n\n")) writer.text.pop_back();
  return "# " + escape_markdown(page.title) + "\n\n" + writer.text;
}

}  // namespace tritgrad
