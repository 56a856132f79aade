// An ES module as text; tests/scripts/javascript.sh runs modules in Node.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "models/export/javascript.h"
#include "models/export/js_module.h"
#include "tests/support/support.h"

namespace tritgrad::test::test_js_module {
namespace {

// Two inputs, a column of numbers and one of two words, and as many classes as names.
InferenceNetwork small_network(const std::vector<std::string>& class_names) {
  const auto classes = std::ssize(class_names);
  InferenceProduct product;
  product.name = "head";
  product.inputs = product.group = 3;
  product.outputs = classes;
  for (std::int64_t i = 0; i < 3 * classes; ++i) {
    product.trits.push_back(static_cast<std::int8_t>(i % 3 - 1));
  }
  product.scales.assign(static_cast<std::size_t>(classes), 1.0f);
  product.in_integers = true;
  InferenceNetwork network{
      .inputs = 3, .class_names = class_names, .means = {0.0f}, .inverse_stds = {1.0f}};
  network.layers.push_back({.product = std::move(product),
                            .bias = std::vector<float>(static_cast<std::size_t>(classes), -2.0f)});
  return network;
}

std::int64_t occurrences(std::string_view text, std::string_view part) {
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++count;
  return count;
}

}  // namespace

TEST_CASE("js module: no text of a user's ends a script, a line or a string") {
  const std::string nasty = "</script><!--<script>\"'\\`${x}\n\r\t\x01\xE2\x80\xA8\xE2\x80\xA9\xFF";
  InferenceNetwork network = small_network({nasty, "\xC3\xA9"});
  network.table.emplace();
  network.table->columns.resize(2);
  network.table->columns[0].name = nasty;
  network.table->columns[1].words = {nasty, "*/"};
  const std::string module =
      js_module(network, {nasty, {nasty, "*/ // " + nasty, export_signature()}}, {});
  CHECK(std::all_of(module.begin(), module.end(),
                    [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  CHECK(occurrences(module, "</") == 0);
  CHECK(occurrences(module, "<!") == 0);
  CHECK(occurrences(module,
                    "\\u003c/script>\\u003c!--\\u003cscript>\\\"'\\\\`${x}\\n\\r\\t\\u0001"
                    "\\u2028\\u2029\\ufffd\"") == 3);
  CHECK(occurrences(module, "\\u00e9") == 1);
  CHECK(is_export(module));
  // The lines of the source, those of the provenance, and an empty one.
  CHECK(std::count(module.begin(), module.end(), '\n') ==
        std::count(javascript::kModel.begin(), javascript::kModel.end(), '\n') + 4);
}

TEST_CASE("js module: trits, floats and their bytes are as the head says") {
  InferenceNetwork network = small_network({"a", "b"});
  // Trits -1 0 1 -1 0 | 1: digits 0 1 2 0 1, the lowest first, are 3 + 18 + 81 = 102, and 2; -2 is
  // C0000000, its lowest byte first.
  const std::string module = js_module(network, {"m", {}}, {});
  CHECK(occurrences(module, R"("trits":"ZgI=")") == 1);
  CHECK(occurrences(module, R"("bias":"AAAAwAAAAMA=")") == 1);
  CHECK(js_module(network, {"m", {}}, {}) == module);

  const ExportBytes bytes = js_module_bytes(network, {});
  CHECK(bytes.weights == 2);
  CHECK(bytes.scales == 8);
  CHECK(bytes.others == 8 + 8);
  CHECK(bytes.workspace == 0);
  network.offsets = {1e9, 0.0, 0.0};
  CHECK(js_module_bytes(network, {}).others == bytes.others + 24);
}

TEST_CASE("js module: what is left out where a network has none of it") {
  InferenceNetwork network = small_network({"a", "b"});
  const auto has = [&](const char* part) { return occurrences(js_module(network, {}, {}), part); };
  CHECK(has("\"columns\":[") == 0);
  CHECK(has("\"image\":[") == 0);
  CHECK(has("\"offsets\":[") == 0);
  CHECK(has("\"squareRoots\":") == 0);
  CHECK(has("\"allowed\":false") == 1);
  network.missing = MissingCells::kMode;
  network.square_roots = true;
  network.image = {1, 3, 1};
  network.table.emplace().columns.resize(3);
  network.table->columns[1].fill_number = 0.5;
  CHECK(has("\"allowed\":true") == 1);
  CHECK(has("\"squareRoots\":true") == 1);
  CHECK(has("\"image\":[1,3,1]") == 1);
  CHECK(has(R"([{"name":"column 0"},{"name":"column 1","fill":0.5},{"name":"column 2"}])") == 1);
}

}  // namespace tritgrad::test::test_js_module
