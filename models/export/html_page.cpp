#include "models/export/html_page.h"

#include <span>
#include <string_view>

#include "engine/check.h"
#include "engine/text.h"
#include "models/export/javascript.h"
#include "models/export/js_module.h"

namespace tritgrad {
namespace {

// Text as HTML has it, between tags and in attributes.
std::string html_text(const std::string& text) {
  std::string safe;
  for (const char c : printable(as_utf8(text))) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else if (c == '"') {
      safe += "&quot;";
    } else {
      safe += c;
    }
  }
  return safe;
}

struct Insertion {
  std::string_view place;
  std::string text;
};

// Puts each text in its place. Places within what is inserted stay as they are.
std::string with_insertions(std::string_view frame, std::span<const Insertion> insertions) {
  std::string text;
  while (!frame.empty()) {
    const Insertion* found = nullptr;
    for (const Insertion& each : insertions) {
      if (frame.starts_with(each.place)) found = &each;
    }
    text += found != nullptr ? std::string_view(found->text) : frame.substr(0, 1);
    frame.remove_prefix(found != nullptr ? found->place.size() : 1);
  }
  return text;
}

// Where the bytes are, and the sentences behind the first one.
std::string about_text(const ExportHead& head, const ExportBytes& bytes) {
  std::string text =
      concat("  <p>The network takes ", bytes.tables(), " bytes: weights ", bytes.weights,
             ", scales ", bytes.scales, ", norms and inputs ", bytes.others, ".</p>\n");
  for (std::size_t i = 1; i < head.provenance.size(); ++i) {
    text += "  <p>" + html_text(head.provenance[i]) + "</p>\n";
  }
  return text;
}

}  // namespace

void check_html_page(const InferenceNetwork& network, const ExportHead&) {
  const std::int64_t channels = network.image.channels;
  check(network.image.size() == 0 || channels == 1 || channels == 3, "export: images of ", channels,
        " channels found, but a page (.html) shows those of 1 or 3 alone; .js and .h express them");
}

std::string html_page(const InferenceNetwork& network, const ExportHead& head,
                      const ExportSettings& settings) {
  const Insertion insertions[] = {
      {"@NAME@", html_text(head.name)},
      {"@MODEL@", head.provenance.empty() ? "" : html_text(head.provenance.front())},
      {"@ABOUT@", about_text(head, js_module_bytes(network, settings))},
      {"@STYLE@", std::string(javascript::kStyle)},
      {"@SCRIPT@", concat(js_module(network, head, settings), javascript::kPage)}};
  return with_insertions(javascript::kFrame, insertions);
}

}  // namespace tritgrad
