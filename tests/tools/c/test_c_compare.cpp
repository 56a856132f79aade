// Comparisons from C are those of the command line.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/c_handles.h"
#include "tests/support/program.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_c_compare {
namespace {

using Json = nlohmann::json;

constexpr const char* kSpec =
    R"({"model": "mlp:8", "epochs": 2, "recipes": ["master", "votes"], "seeds": 2, "tune": 2})";

// What depends on time, on the memory of the process, or on how the comparison was asked for.
Json comparable(Json comparison) {
  for (const char* key : {"command", "seconds"}) comparison.erase(key);
  const auto erase = [](Json& json, const auto& self) -> void {
    if (json.is_object()) {
      for (const char* key :
           {"seconds", "seconds_per_run", "time", "peak_live_bytes", "data_bytes", "cached"}) {
        json.erase(key);
      }
    }
    if (json.is_structured()) {
      for (Json& inner : json) self(inner, self);
    }
  };
  erase(comparison, erase);
  return comparison;
}

// Counts calls, and ends the comparison at one of them.
struct Watch {
  std::int64_t calls = 0, end_at = -1, last = 0, total = 0;

  static int see(const tg_progress* progress, void* context) {
    Watch& watch = *static_cast<Watch*>(context);
    CHECK(progress->step >= watch.last);
    watch.last = progress->step;
    watch.total = progress->total_steps;
    return ++watch.calls == watch.end_at ? 1 : 0;
  }
};

}  // namespace

TEST_CASE("c compare: the JSON is that of the command line") {
  const TempDir folder;
  const DataHandle data{tg_data_open(R"({"data": "wine"})")};
  Watch watch;
  const char* text = tg_compare(data.handle, kSpec, Watch::see, &watch);
  CAPTURE(std::string(tg_error()));
  REQUIRE(text != nullptr);
  const Json json = Json::parse(text);
  CHECK(watch.total == 2 * (2 + 2));  // trials and seeds of two recipes
  CHECK(watch.last == watch.total);
  CHECK(watch.calls > watch.total);  // it sees steps, too
  const std::string path = folder / "c.json";
  const Result compared = tritgrad::test::run(
      "compare --data wine --model mlp:8 --epochs 2 --recipes master,votes --seeds 2 --tune 2 "
      "--quiet --cache " +
      folder.path().string() + " --json " + path);
  REQUIRE(compared.exit_code == 0);
  const Json expected = Json::parse(read_text(path));
  CHECK(comparable(json.at("comparisons").at(0)) == comparable(expected.at("comparisons").at(0)));
}

TEST_CASE("c compare: an observer ends it between steps and between runs") {
  const DataHandle data{tg_data_open(R"({"data": "wine"})")};
  Watch whole;
  REQUIRE(tg_compare(data.handle, kSpec, Watch::see, &whole) != nullptr);
  for (const std::int64_t at : {std::int64_t{1}, std::int64_t{3}, whole.calls}) {
    Watch watch;
    watch.end_at = at;
    check_c_error(tg_compare(data.handle, kSpec, Watch::see, &watch), "interrupted after",
                  TG_INTERRUPTED);
    CHECK(watch.calls == at);
  }
}

TEST_CASE("c compare: finished runs are kept where a folder is named, and nowhere else") {
  const TempDir folder;
  const DataHandle data{tg_data_open(R"({"data": "iris"})")};
  const std::string cache = folder / "runs";
  const std::string spec =
      R"({"model": "mlp:4", "epochs": 1, "recipes": ["votes"], "seeds": 1, "cache": ")" + cache +
      "\"}";
  const auto is_cached = [&] {
    const char* text = tg_compare(data.handle, spec.c_str(), nullptr, nullptr);
    REQUIRE(text != nullptr);
    return Json::parse(text).at("comparisons").at(0).at("runs").at(0).value("cached", false);
  };
  CHECK_FALSE(is_cached());
  CHECK(is_cached());
}

TEST_CASE("c compare: what does not fit is refused before the first run") {
  const DataHandle data{tg_data_open(R"({"data": "iris"})")};
  const auto refused = [&](const char* spec, const char* part) {
    check_c_error(tg_compare(data.handle, spec, nullptr, nullptr), part);
  };
  refused(R"({"recipe": "votes"})", "did you mean 'recipes'?");
  refused(R"({"recipes": "votes"})", "a list of texts expected");
  refused(R"({"recipes": []})", "'recipes' is empty");
  refused(R"({"recipes": ["vote"]})", "did you mean 'votes'?");
  refused(R"({"recipes": ["all", "votes"]})", "'all' stands alone");
  refused(R"({"seeds": 0})", "'seeds' is 0");
  refused(R"({"tune": 3, "folds": 3})", "--tune: with --folds");
  refused(R"({"baseline": "dqt"})", "is none of the recipes");
  check_c_error(tg_compare(nullptr, "{}", nullptr, nullptr), "data: NULL found");
}

}  // namespace tritgrad::test::test_c_compare
