// Pages and tables about runs.
#include <doctest/doctest.h>

#include <filesystem>

#include "engine/check.h"
#include "tests/support/markup_balance.h"
#include "tests/support/sample_runs.h"
#include "tests/support/support_files.h"
#include "tools/compare/report.h"
#include "tools/compare/summary.h"
#include "tools/report/number_text.h"
#include "tools/report/page.h"
#include "tools/report/svg.h"

namespace tritgrad::test::test_report {
namespace {

TEST_CASE("compare table: the numbers of the summary, baseline first") {
  const std::string table = render_terminal_table(record_of(two_recipes()));
  CHECK(table.find("master ") < table.find("latent8"));
  for (const char* text :
       {"98.60 ± 0.14", "+0.15", "1.18", "0.074", "12.5", "34.0 %", "−0.54 … +0.84", "3.00 MiB"}) {
    CHECK(contains(table, text));
  }
}

TEST_CASE("report: every number of the summary stands in the page") {
  std::vector<RunResult> runs = two_recipes();
  const std::string html = html_of(runs);
  CHECK(markup_error(html) == "");
  const Comparison comparison = compare(runs, "master");
  CHECK(contains(html, escape_markup(conclusion(comparison))));
  for (const RecipeSummary& summary : comparison.recipes) {
    for (const SummaryColumn& column : summary_columns()) {
      if (column.heading == "recipe") continue;  // the name is the head of the row
      CHECK(contains(html, "<td>" + column.text(summary) + "</td>"));
    }
  }
  for (const RunResult& run : runs) CHECK(contains(html, run.weights_sha256));
}

TEST_CASE("report: nothing is loaded and nothing is run") {
  const std::string html = html_of(two_recipes());
  for (const char* part : {"<script", "<link", "<img", "src=", "href=", "url(", "@import"}) {
    CHECK_FALSE(contains(html, part));
  }
}

TEST_CASE("report: all text from outside is escaped") {
  CHECK(escape_markup("<a b=\"c\" d='e'>&\x01") ==
        "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\uFFFD");
  const std::string evil = "<script>\"'&</title></svg>";
  RunResult run = make_run(evil, 1, 0.9, kLatent);
  run.data = run.model = run.weights_sha256 = evil;
  ComparisonRecord record = record_of({run, make_run("b", 1, 0.8, kMaster)});
  record.data = record.dataset = record.model = record.command = record.baseline = evil;
  const Page page = make_page({evil, evil, {record}});
  const std::string html = render_html(page);
  CHECK_FALSE(contains(html, "<script"));
  CHECK(markup_error(html) == "");
  // Fenced code is shown as it is; everything else would be markup.
  const std::string markdown = render_markdown(page, "folder");
  for (std::size_t at = 0; (at = markdown.find("<script", at)) != std::string::npos; ++at) {
    const std::size_t line = markdown.rfind('\n', at) + 1;
    CHECK(markdown.substr(line - 5, 5) == "\n```\n");
  }
}

TEST_CASE("report: single seed, single recipe, nothing measured, no runs at all") {
  CHECK(markup_error(html_of({})) == "");
  const std::string alone = html_of({make_run("master", 1, 0.9, kMaster)});
  CHECK(markup_error(alone) == "");
  CHECK_FALSE(contains(alone, "against bytes per parameter"));  // one point is no comparison
  CHECK(contains(html_of(two_recipes()), "against bytes per parameter"));
  RunResult bare;
  bare.recipe = "bare";
  const std::string html = html_of({bare});
  CHECK(markup_error(html) == "");
  CHECK_FALSE(says_nan(html));
  CHECK_FALSE(contains(html, "against bytes per parameter"));  // no accuracy
}

TEST_CASE("report: extreme values neither break the page nor reach it as words") {
  std::vector<RunResult> runs;
  const double extremes[] = {0.0, 1.0, kNan, kInfinity, -kInfinity, 1e300, -1e300, 1e-300};
  for (const double value : extremes) {
    RunResult run =
        make_run("r" + std::to_string(runs.size()), 1, value, {value, value, value, value, value});
    run.train_loss = run.seconds = run.flips_per_step = value;
    run.zero_fraction = run.test_score_std = value;
    run.curve = {{1, value, value, value}, {value, 0.5, 0.5, 0.5}, {3, 1e-9, 1, 1}};
    run.parameters = std::numeric_limits<std::int64_t>::max();
    run.peak_live_bytes = std::numeric_limits<std::int64_t>::max();
    runs.push_back(run);
    const std::string alone = html_of({run});
    CHECK(markup_error(alone) == "");
  }
  const std::string html = html_of(runs);
  CHECK(markup_error(html) == "");
  CHECK_FALSE(says_nan(html));
  ComparisonRecord record = record_of(runs);
  record.baseline = "r0";
  CHECK_FALSE(says_nan(render_terminal_table(record)));
}

TEST_CASE("report: forty recipes still have a place each") {
  std::vector<RunResult> runs;
  for (int i = 0; i < 40; ++i) {
    runs.push_back(make_run("recipe-" + std::to_string(i), 1, 0.9 + 0.001 * i, kLatent));
  }
  CHECK(markup_error(html_of(runs)) == "");
}

TEST_CASE("report: written to a file, or refused with its name") {
  const TempDir folder;
  const std::string path = folder / "report.html";
  const Report report = report_of(two_recipes());
  write_page(path, make_page(report));
  CHECK(read_text(path) == render_html(make_page(report)));
  const std::string message =
      refusal([&] { write_page("/nonexistent-folder/report.html", make_page(report)); });
  CHECK(contains(message, "/nonexistent-folder/report.html"));
  CHECK(contains(message, "No such file"));
}

// Two rates on trial, of which the second was chosen.
Tuning tuned(const std::vector<EpochPoint>& curve) {
  return {"latent8", {{0.5, 0.03, 0.9, 1, false}, {1, 0.06, 0.95, 1, false, curve}}, 1};
}

TEST_CASE("report: Markdown has every table and picture of the page, and the files are there") {
  const TempDir folder;
  ComparisonRecord record = record_of(two_recipes());
  record.tunings = {tuned({{1, 1, 0.5, 0.93}, {2, 0.9, 0.6, 0.95}})};
  ComparisonRecord other = record_of(two_recipes());
  other.data = "my table.csv";
  const Report report{"tritgrad compare --plan p.toml", "a machine", {record, other}};
  write_page(folder / "RESULTS.md", make_page(report));
  const std::string text = read_text(folder / "RESULTS.md");
  int tables = 0, pictures = 0;
  for (const PageBlock& block : make_page(report).blocks) {
    if (const auto* table = std::get_if<PageTable>(&block)) {
      ++tables;
      std::string head = "|";
      for (const std::string& title : table->heads) head += " " + title + " |";
      CHECK(contains(text, head + "\n|:---|"));
      for (const auto& row : table->rows) {
        CHECK(row.size() == table->heads.size());
        for (const std::string& cell : row) CHECK(contains(text, cell));
      }
    }
    if (const auto* shown = std::get_if<Pictures>(&block)) {
      for (const Figure& figure : shown->figures) {
        ++pictures;
        CHECK(contains(text, "<img src=\"RESULTS/" + figure.name + ".svg\""));
        CHECK(read_text(folder.path() / "RESULTS" / (figure.name + ".svg")) == figure.svg);
      }
    }
  }
  CHECK(tables == 1 + 3 + 4);  // all data sets, then accuracy, bytes, runs; one is tuned
  CHECK(pictures == 2 * 5);
  CHECK(std::filesystem::exists(folder.path() / "RESULTS" / "2-my-table-csv-pareto.svg"));
  for (const char* part :
       {"\n```\ntritgrad compare --data mnist\n```\n", "# Comparison of recipes\n",
        "## mlp:512,512 on my table.csv\n", "| **master** |"}) {
    CHECK(contains(text, part));
  }
  CHECK_FALSE(text.ends_with("\n\n"));
  folder.write("taken", "");
  CHECK(contains(refusal([&] { check_report_path(folder / "taken.md"); }), "choose another name"));
  CHECK(refusal([&] { check_report_path(folder / "taken.html"); }).empty());
}

TEST_CASE("report: in Markdown a list takes in neither what follows it nor the next list") {
  ComparisonRecord record = record_of(two_recipes());
  record.command = "tritgrad compare --data 'a````b'";
  const std::string text = render_markdown(make_page({"c", "a machine", {record}}), "folder");
  CHECK_FALSE(contains(text, "\n    "));  // indented code would belong to the list before it
  CHECK_FALSE(contains(text, "\n\t"));
  // Longer than any run of backticks in it.
  CHECK(contains(text, "\n`````\n" + record.command + "\n`````\n"));
  int lists = 0;
  for (const std::string mark : {"- ", "* "}) {
    std::size_t last = std::string::npos;  // where the line after the last item of a list begins
    for (std::size_t at = 0; (at = text.find("\n" + mark, at)) != std::string::npos; ++at) {
      const bool begins = at != last;
      lists += begins ? 1 : 0;
      if (begins && last != std::string::npos) {
        const std::string between = text.substr(last, at - last);
        CHECK(between.find_first_not_of('\n') != std::string::npos);
      }
      last = text.find('\n', at + 1);
    }
  }
  CHECK(lists == 4);  // of the page, of the comparison, its differences, definitions
}

TEST_CASE("report: Markdown escapes what would be markup, and nothing else") {
  const auto paragraph_of = [](const std::string& text) {
    return render_markdown({"t", {Paragraph{text, false}}}, "folder");
  };
  CHECK(paragraph_of("the run's \"own\" rate, 1 > 0") == "# t\n\nthe run's \"own\" rate, 1 > 0\n");
  CHECK(paragraph_of("<b> & *a* _c_ | `d` [e] ~f~ \\ \x01\nend") ==
        "# t\n\n&lt;b> &amp; \\*a\\* \\_c\\_ \\| \\`d\\` \\[e\\] \\~f\\~ \\\\ \uFFFD end\n");
  CHECK(paragraph_of("> no quotation > here") == "# t\n\n&gt; no quotation > here\n");
}

TEST_CASE("report: NAME.html or NAME.md, and the folder of pictures before any run") {
  const TempDir folder;
  const auto said = [&](const char* name) {
    return refusal([&] { check_report_path((folder / name).string()); });
  };
  for (const char* name : {"a.html", "a.md", "a.b.md", ".a.html"}) CHECK(said(name).empty());
  for (const char* name : {"a", "a.htm", "a.MD", "a.pdf", ".md", ".html", "..md", "...md", "md"}) {
    CAPTURE(name);
    CHECK(contains(said(name), "NAME.html or NAME.md expected"));
  }
  CHECK(refusal([] { check_report_path(""); }).empty());
  const PictureFolder of_html(folder / "a.html"), of_none("");
  CHECK(std::filesystem::is_empty(folder.path()));
  {
    const PictureFolder of_markdown(folder / "a.md");
    CHECK(std::filesystem::is_directory(folder / "a"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));  // as nothing came into it
  std::filesystem::create_directory(folder / "a");
  { const PictureFolder there(folder / "a.md"); }
  CHECK(std::filesystem::is_directory(folder / "a"));
}

TEST_CASE("report: machines are named where the runs come from another") {
  std::vector<RunResult> runs = two_recipes();
  const auto page = [&] { return html_of(runs); };
  for (RunResult& run : runs) run.machine = "a machine";
  CHECK_FALSE(contains(page(), "Machines of the runs"));
  runs[0].machine = "another";
  CHECK(contains(page(), "a machine (3 runs); another (1 run)"));
  // Trials count as well.
  ComparisonRecord record = record_of(runs);
  TuningCandidate trial;
  trial.machine = "another";
  record.tunings = {{"latent8", {trial}, 0}};
  CHECK(contains(render_html(make_page({"c", "a machine", {record}})),
                 "a machine (3 runs); another (2 runs)"));
}

TEST_CASE("report: the table of trials has a column for every factor that some recipe tried") {
  ComparisonRecord record = record_of(two_recipes());
  record.tunings = {{"latent8", {{0.5, 0.03, 0.9, 1, false}, {1, 0.06, 0.95, 1, false}}, 1},
                    {"fp32", {{1, 0.1, 0.8, 1, false}, {2, 0.2, {}, 1, false}}, 0}};
  const PageTable table = tuning_table(record);
  REQUIRE(table.heads.size() == 5);
  CHECK(table.heads[1] == "validation % at × 0.5");
  CHECK(table.heads[3] == "validation % at × 2");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0] ==
        std::vector<std::string>{"latent8", "90.00", "95.00", kMissing, "0.06 (× 1, edge)"});
  CHECK(table.rows[1] ==
        std::vector<std::string>{"fp32", kMissing, "80.00", "diverged", "0.1 (× 1, edge)"});
}

TEST_CASE("report: a tuned comparison draws the trials on rows held out") {
  ComparisonRecord record = record_of(two_recipes());
  for (RunResult& run : record.runs) {
    for (EpochPoint& point : run.curve) point.val_score.reset();
  }
  const auto page = [&] { return render_html(make_page({"c", "m", {record}})); };
  CHECK_FALSE(contains(page(), "validation accuracy, % by epoch"));
  record.tunings = {tuned({{1, 1, 0.5, 0.95}})};
  CHECK_FALSE(contains(page(), "validation accuracy, % by epoch"));  // one epoch draws no curve
  record.tunings = {tuned({{1, 1, 0.5, 0.93}, {2, 0.9, 0.6, 0.95}})};
  CHECK(contains(page(), "validation accuracy, % by epoch"));
  CHECK(contains(page(), "of the trials that chose the learning rates"));
}

TEST_CASE("report: the line of the model names what trained it") {
  RunResult run = make_run("master", 1, 0.9, kMaster);
  run.epochs = 1;
  run.batch = 32;
  run.augment = "shift=2,flip";
  run.label_smoothing = 0.1;
  const std::string page = html_of({run});
  for (const char* one :
       {", 1 epoch in batches of 32, images augmented by shift=2,flip, labels smoothed by 0.1<",
        "for 1 run<"}) {
    CAPTURE(one);
    CHECK(contains(page, one));
  }
  CHECK(contains(page, "Loss on the training data, against smoothed labels."));
  run.label_smoothing = 0.0;
  CHECK(contains(html_of({run}), ", labels not smoothed<"));
  run.pixels = "sqrt";
  CHECK(contains(html_of({run}), ", labels not smoothed, square roots of pixels<"));
}

namespace {

// Two records of language models, of which one has a title and a baseline of its own.
std::vector<ComparisonRecord> claims() {
  std::vector<RunResult> runs = two_recipes();
  for (RunResult& run : runs) {
    run.metric = Metric::kBitsPerByte;
    run.test_score = 2.5;
    run.epochs = 10;
    run.seconds = 100;
    run.time = {.preparing = 30, .batches = 5, .steps = 15, .evaluation = 50};
  }
  ComparisonRecord record = record_of(runs);
  record.tokens_per_epoch = 50048;
  record.weight_bytes = {{"latent8", 1.07}, {"master", 16.0}};
  ComparisonRecord other = record;
  other.title = "A claim";
  other.baseline = "latent8";
  return {record, other};
}

}  // namespace

TEST_CASE("report: a page of texts speaks of bits, tokens a second and the bytes of matrices") {
  ComparisonRecord record = claims()[0];
  const Comparison comparison = compare(record);
  // 500,480 tokens in 5 + 15 s.
  CHECK(*comparison.recipes[0].tokens_per_second == doctest::Approx(25024.0));
  CHECK(*comparison.recipes[1].bytes_per_weight == 1.07);
  const std::string page = render_markdown(make_page({"c", "m", {record, record}}), "r");
  CHECK_FALSE(contains(page, "ccura"));  // neither accuracy nor accurate
  CHECK_FALSE(contains(page, "RMSE"));
  for (const std::string text :
       {"How well do language models that each recipe trains tell the next token",
        "Differences to the baseline in bits for each byte, with", "| 25.0 k |", "| 1.07 |",
        "The score minus that of master, in bits for each byte.", "tokens a second"}) {
    CAPTURE(text);
    CHECK(contains(page, text));
  }
  CHECK(contains(render_terminal_table(record), "tokens/s"));
  // Of tables, neither.
  const std::string tables = html_of(two_recipes());
  CHECK_FALSE(contains(tables, "tokens a second"));
  CHECK_FALSE(contains(tables, "of matrices alone"));
  CHECK(contains(tables, "The score minus that of master, in points of accuracy."));
}

TEST_CASE("report: a comparison has its title; different baselines have no overview") {
  const auto page = [](const std::vector<ComparisonRecord>& records) {
    return render_markdown(make_page({"c", "m", records}), "r");
  };
  const std::string claimed = page(claims());
  CHECK(contains(claimed, "## mlp:512,512 on mnist\n"));
  CHECK(contains(claimed, "## A claim\n"));
  CHECK(contains(claimed, "Δ latent8"));
  CHECK(contains(claimed, "The score minus that of the baseline, in"));
  CHECK_FALSE(contains(claimed, "Differences to the baseline"));
  std::vector<ComparisonRecord> same = claims();
  same[1].baseline = same[0].baseline;
  CHECK(contains(page(same), "| mnist, mlp:512,512 | A claim |"));
}

TEST_CASE("report: rows that others published, and their protocol below the table") {
  Report report = report_of(two_recipes());
  const std::string before = render_markdown(make_page(report), "r");
  CHECK_FALSE(contains(before, "published"));
  report.records[0].published = {{"Theirs <b>", 97.361, 0.2, std::nullopt, "best of ten & more"}};
  const std::string html = render_html(make_page(report));
  CHECK(markup_error(html) == "");
  CHECK(contains(html, "Theirs &lt;b&gt; (published)<"));
  CHECK(contains(html, "97.36 ± 0.20"));
  CHECK(contains(html, "best of ten &amp; more"));
  CHECK(contains(html, "nothing of it was measured here"));
  // A row of the score's table alone, and no part of any conclusion or difference.
  const Comparison comparison = compare(report.records[0]);
  CHECK(summary_table(comparison, kScoreTable).rows.size() == 3);
  CHECK(summary_table(comparison, kBytesTable).rows.size() == 2);
  CHECK(conclusion(comparison) == conclusion(compare(two_recipes(), "master")));
  CHECK(differences(comparison) == differences(compare(two_recipes(), "master")));
}

TEST_CASE("markup checker: finds what it is there to find") {
  CHECK(markup_error("<p>a<br/>b</p>") == "");
  CHECK(markup_error("<p><b></p></b>") != "");
  CHECK(markup_error("<p>") != "");
  CHECK(markup_error("</p>") != "");
  CHECK(markup_error("<p>a & b</p>") != "");
  CHECK(markup_error("<p a=b></p>") != "");
  CHECK(markup_error("<p>1 > 0</p>") != "");
}

}  // namespace
}  // namespace tritgrad::test::test_report
