#include "tools/report/markup.h"
#include "tools/report/page.h"
#include "tools/report/report_style.h"

namespace tritgrad {
namespace {

std::string row_of(const std::vector<std::string>& cells, const char* first, const char* others,
                   const char* first_scope, const char* other_scope, bool emphasised) {
  std::string html = emphasised ? "<tr class=\"baseline\">\n" : "<tr>\n";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    html += i == 0 ? element(first, cells[i], first_scope) : element(others, cells[i], other_scope);
  }
  return html + "</tr>\n";
}

struct HtmlWriter {
  std::string html;

  void operator()(const Heading& heading) {
    html += element(heading.level == 2 ? "h2" : "h3", heading.text);
  }
  void operator()(const Paragraph& paragraph) {
    html += element("p", paragraph.text, paragraph.lead ? " class=\"headline\"" : "");
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
    html += "<div class=\"scroll\"><table>\n<thead>\n" +
            row_of(table.heads, "th", "th", " scope=\"col\"", " scope=\"col\"", false) +
            "</thead>\n<tbody>\n";
    for (const std::vector<std::string>& row : table.rows) {
      html += row_of(row, "th", "td", " scope=\"row\"", "", row.front() == table.emphasised);
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

}  // namespace

std::string render_html(const Page& page) {
  HtmlWriter writer;
  for (const PageBlock& block : page.blocks) std::visit(writer, block);
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<meta name=\"color-scheme\" content=\"light dark\"/>\n" +
         element("title", page.title) + report_style() + "</head>\n<body>\n<main>\n" +
         element("h1", page.title) + writer.html + "</main>\n</body>\n</html>\n";
}

}  // namespace tritgrad
