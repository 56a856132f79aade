// tritgrad train trains one model; tritgrad eval scores a saved one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "engine/files/checkpoint.h"
#include "engine/text.h"
#include "models/networks/llama.h"
#include "models/training/evaluate.h"
#include "tools/cli/checkpoint_data.h"
#include "tools/cli/commands.h"
#include "tools/cli/common_options.h"
#include "tools/cli/output_file.h"
#include "tools/cli/terminal.h"
#include "tools/cli/training_observer.h"
#include "tools/report/confusion_table.h"
#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

// Time, memory and traffic.
void print_costs(const RunResult& r) {
  const auto share = [&](double seconds) {
    return r.seconds > 0.0 ? 100.0 * seconds / r.seconds : 0.0;
  };
  print_lines(
      stdout,
      "  time           steps {:.1f} %, batches {:.1f} %, evaluation {:.1f} %, start {:.1f} %{}\n",
      share(r.time.steps), share(r.time.batches), share(r.time.evaluation), share(r.time.preparing),
      r.time.saving > 0.0 ? fmt::format(", saving {:.1f} %", share(r.time.saving)) : "");
  const BytesPerParameter& b = r.bytes_per_parameter;
  print_lines(
      stdout,
      "  bytes/param    {:.3f}: weights {:.3f}, scales {:.3f}, residual {:.3f}, moments {:.3f}, "
      "gradients {:.3f}\n",
      b.total(), b.weights, b.scales, b.residual, b.moments, b.gradients);
  print_lines(stdout, "  peak live      {} ({} parameters), beside {} of data\n",
              human_bytes(static_cast<double>(r.peak_live_bytes)),
              human_count(static_cast<double>(r.parameters)),
              human_bytes(static_cast<double>(r.data_bytes)));
  if (r.traffic) {
    const Traffic& t = *r.traffic;
    print_lines(stdout,
                "  sent           {} a step in the mean ({} by formula) by {}; last step {} "
                "({} by formula), {:.3f} B/param\n",
                human_bytes(t.bytes_per_step), human_bytes(t.forecast_per_step),
                t.ranks == 1 ? "the only rank" : fmt::format("each of {} ranks", t.ranks),
                human_bytes(static_cast<double>(t.last_step_bytes)),
                human_bytes(static_cast<double>(t.last_step_forecast)),
                t.last_step_bytes_per_parameter);
  }
}

// "98.56 %", or, in the units of the label, "53.12".
std::string score_text(Metric metric, double score) {
  return metric == Metric::kAccuracy ? fmt::format("{:.2f} %", 100.0 * score)
                                     : fmt::format("{:.4g}", score);
}

// ", MAE 43.2, R² 0.48", or ", 1.573 nats a token, perplexity 4.82": what is told beside the score.
std::string error_text(const std::optional<double>& mae, const std::optional<double>& r2,
                       const std::optional<double>& nats) {
  return (mae ? fmt::format(", MAE {:.4g}", *mae) : "") +
         (r2 ? fmt::format(", R² {:.2f}", *r2) : "") +
         (nats ? fmt::format(", {:.4f} nats a token, perplexity {:.4g}", *nats, std::exp(*nats))
               : "");
}

void print_scores(const RunResult& r) {
  if (!r.test_score) return;
  std::string spread = r.test_score_std ? fmt::format(" +- {:.2f}", 100.0 * *r.test_score_std) : "";
  if (r.test_score_std && r.metric == Metric::kRmse) {
    spread = fmt::format(" +- {:.2g}", *r.test_score_std);
  }
  const std::string folds = r.folds > 0 ? fmt::format(" ({} folds)", r.folds) : "";
  print_lines(stdout, "  {:<14} {}{}{}{}\n", concat("test ", to_text(r.metric)),
              score_text(r.metric, *r.test_score), spread,
              error_text(r.test_mae, r.test_r2, r.test_nats), folds);
}

void print_summary(const RunResult& r, const std::string& data) {
  const std::string pixels = pixel_words(r), labels = label_words(r);
  const std::string resized =
      r.resize == 0 ? "" : fmt::format(", made smaller to {0} x {0} pixels", r.resize);
  print_lines(stdout, "{} on {}{}, {}, {}, seed {}: {}, {}, {:.1f} s\n", r.recipe, r.data,
              pixels.empty() ? "" : " (" + pixels + ")", r.model, r.compute, r.seed,
              counted(r.epochs, "epoch"), counted(r.steps, "step"), r.seconds);
  print_lines(stdout, "  data           {}{}\n", data, resized);
  print_scores(r);
  if (r.balanced_accuracy) {
    print_lines(stdout, "  balanced       {:.2f} %, the mean over the classes\n",
                100.0 * *r.balanced_accuracy);
  }
  if (r.val_score) {
    print_lines(stdout, "  {:<14} {}\n", concat("val ", to_text(r.metric)),
                score_text(r.metric, *r.val_score));
  }
  const char* unit = r.metric == Metric::kRmse ? "squared deviations" : "nats";
  print_lines(stdout, "  train loss     {}{}\n",
              std::isfinite(r.train_loss) ? fmt::format("{:.4f} {}", r.train_loss, unit) : "-",
              labels.empty() ? "" : ", against " + labels);
  if (r.zero_fraction) {
    print_lines(stdout, "  zero weights   {:.1f} %, {:.1f} flips per step\n",
                100.0 * *r.zero_fraction, r.flips_per_step);
  }
  if (r.movable_fraction && *r.movable_fraction < 0.9995) {  // below what prints as all of them
    print_lines(stdout,
                "  movable        {:.1f} % of the weights; no watched update moved the rest\n",
                100.0 * *r.movable_fraction);
  }
  if (r.skipped_updates > 0) {
    print_lines(stdout, "  skipped        updates of {}, which were not finite\n",
                counted(r.skipped_updates, "step"));
  }
  print_costs(r);
  print_lines(stdout, "  weights sha256 {}\n", r.weights_sha256);
  if (r.confusion) print_lines(stdout, "\n{}", confusion_table(*r.confusion));
}

// Throws Error for options of ranks that the method has no use for.
void check_method(const CLI::App& command, ParallelMethod method) {
  check(command.count("--dp-majority") == 0 || method == ParallelMethod::kVotes,
        "--dp-majority is a way to count votes; it needs --dp votes");
  for (const auto& [option, what] :
       {std::pair("--dp-warmup", "has a warm-up"), std::pair("--dp-scale", "scales signs")}) {
    check(command.count(option) == 0 || method == ParallelMethod::kApmsqueeze, option,
          ": only apmsqueeze ", what, "; leave the option out or use --dp apmsqueeze");
  }
}

// Fills in the options that a resumed run takes from its checkpoint. Throws Error for those that
// contradict it.
void adopt_checkpoint(const CLI::App& command, CommonOptions& options) {
  TrainOptions& train = options.train;
  const auto given = [&](const char* option) { return command.count(option) > 0; };
  check(!given("--set") && !given("--lr") && !given("--compute"),
        "--set, --lr and --compute cannot change a resumed run; leave them out");
  check(!given("--tokens"),
        "--tokens: the checkpoint holds the tokenizer of its model; leave the option out");
  TrainSpec saved = SavedRun(train.resume).spec();
  // The same rows may lie elsewhere now; whether they are the same is seen when they are read.
  if (given("--data")) {
    saved.data = train.data;
    forget_columns(train.data, saved);
  }
  if (!given("--dp")) check_method(command, saved.parallel.method);
  const std::vector<FieldText> now = field_texts(train), kept = field_texts(saved);
  const std::vector<FieldText> untouched = field_texts(TrainSpec());
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Field& field = now[i].field;
    if (!given(field.option) || (field.traits & (kChangeable | kUnsaved)) != 0) continue;
    const bool without = kept[i].text == untouched[i].text && (field.traits & kSparse) != 0;
    check(now[i].text == kept[i].text, field.option, ": '", now[i].text,
          "' contradicts the checkpoint '", train.resume, "', which ",
          without ? "was trained without the option" : concat("has '", kept[i].text, "'"),
          "; leave the option out");
  }
  if (given("--epochs")) saved.epochs = train.epochs;
  if (given("--recompute")) saved.recompute = train.recompute;
  saved.folds = train.folds;
  static_cast<TrainSpec&>(train) = saved;
  // Without a file, the steps that a resumed run adds would be lost.
  if (train.save.empty()) train.save = train.resume;
}

// Throws Error where an output would replace a file that the run reads; but a run may be saved
// where it was resumed from. A resumed run has the recipe of its checkpoint and reads no file of
// it.
void check_no_inputs(const CommonOptions& options) {
  const TrainOptions& train = options.train;
  std::vector<InputFile> inputs = input_files(options);
  if (train.resume.empty()) inputs.push_back(recipe_file("--recipe", train.recipe));
  check_no_input("--save", train.save, inputs);
  inputs.push_back({"--resume", train.resume});
  check_no_input("--json", options.json, inputs);
  check_no_input("--log", options.terminal.log, inputs);
}

// Throws Error where --save could not be written: a checkpoint holds names as JSON, and replaces
// checkpoints alone.
void check_save(const TrainOptions& options) {
  if (options.save.empty()) return;
  // The file that is resumed has been read as a checkpoint already.
  check(options.save == options.resume || is_replaceable(options.save), "--save: '", options.save,
        "' is there and is no checkpoint, or a damaged one; delete it, or name another file");
  const std::pair<const char*, const std::string&> names[] = {{"--data", options.data},
                                                              {"--recipe", options.recipe}};
  for (const auto& [option, name] : names) {
    check(is_utf8(name), option, ": '", name,
          "' is not UTF-8 and cannot be kept in a checkpoint; give the file another name");
  }
}

Dataset training_data(const CLI::App& command, const CommonOptions& options) {
  const std::string& resume = options.train.resume;
  if (resume.empty()) return open_data(options);
  const SavedRun saved(resume);
  if (command.count("--data") == 0) return open_saved_data(saved, options);
  Dataset dataset = open_data(options, saved.table(), vocabulary_of(saved));
  saved.adopt_image(dataset);
  return dataset;
}

constexpr double kTimeout = 60.0;

double parse_timeout(const std::string& text) {
  constexpr double kMost = 1e6;
  if (text.empty()) return kTimeout;
  const std::optional<double> seconds = parse_number(text);
  check(seconds && *seconds >= 1.0 && *seconds <= kMost, "--dp-timeout: '", text,
        "' is no time to wait; give seconds, 1 to ", kMost);
  return *seconds;
}

void end_process(const std::string& sentence) {
  std::fflush(stdout);
  std::_Exit(print_error(sentence));
}

// Checks the options of ranks in train.parallel, which a resumed run has from its checkpoint, and
// fills in the micro-batches: one for each rank unless they are given. Connects to the other ranks,
// whose object must outlive train.ranks; `timeout` is what --dp-timeout says. Null without --dp.
// Throws Error for contradictions, and where a launcher started several processes that would all do
// the same.
std::unique_ptr<Communicator> connect(const CLI::App& command, const std::string& timeout,
                                      TrainOptions& train) {
  const double seconds = parse_timeout(timeout);
  const bool resumed = !train.resume.empty();
  check_method(command, train.parallel.method);
  if (train.parallel.method == ParallelMethod::kNone) {
    check(!resumed || launched_ranks() == 1, "there are ", launched_ranks(),
          " ranks, but the checkpoint '", train.resume,
          "' is of a run without --dp; resume it without mpirun");
    check(launched_ranks() == 1, "there are ", launched_ranks(),
          " ranks, which would all train the same; choose how they work together: --dp allreduce, "
          "apmsqueeze or votes");
    check(timeout.empty(),
          "--dp-timeout: without --dp there are no other ranks to wait "
          "for; leave the option out or name a method by --dp");
    return nullptr;
  }
  std::unique_ptr<Communicator> ranks = connect_ranks(seconds, end_process);
  train.ranks = ranks.get();
  const bool parts_are_given = command.count("--micro-batches") > 0;
  if (!parts_are_given && !resumed) train.micro_batches = ranks->size();
  // A resumed run keeps its parts, though some ranks may have none then.
  check(resumed || train.micro_batches >= ranks->size(), "--micro-batches ", train.micro_batches,
        ": ", ranks->size(), " ranks need a part each; give ", ranks->size(),
        " or more, or start fewer ranks");
  return ranks;
}

// Throws Error where a rank names other outputs than the first one, which alone writes them.
void check_same_outputs(const CLI::App& command, const CommonOptions& options,
                        Communicator* ranks) {
  if (ranks == nullptr) return;
  // A run without --save is saved where it was resumed from, wherever that lies for a rank.
  const std::string save = command.count("--save") > 0 ? options.train.save : "";
  check_agreement(*ranks, "name for its checkpoint (--save)", save);
  check_agreement(*ranks, "name for its result (--json)", options.json);
  check_agreement(*ranks, "name for its log (--log)", options.terminal.log);
}

void run_train(const CLI::App& command, CommonOptions& options, const std::string& timeout) {
  apply(options);
  TrainOptions& train_options = options.train;
  if (!train_options.resume.empty()) {
    adopt_checkpoint(command, options);
  } else if (command.count("--recipe") == 0 && context_of(train_options.model) > 0) {
    train_options.recipe += kForLanguageModels;
  }
  check(train_options.save != "-",
        "--save: a checkpoint cannot go to standard output; name a file");
  check(options.terminal.log != "-", "--log: the log cannot go to standard output; name a file");
  check_no_inputs(options);
  check_save(train_options);
  check(train_options.stop_after == 0 || !train_options.save.empty(),
        "--stop-after needs --save FILE");
  check(train_options.save_every == 0 || !train_options.save.empty(),
        "--save-every needs --save FILE");
  const std::unique_ptr<Communicator> ranks = connect(command, timeout, train_options);
  check_same_outputs(command, options, ranks.get());
  const bool is_first = ranks == nullptr || ranks->rank() == 0;  // the first rank alone writes
  const auto output = [&](const char* option, const std::string& path) {
    return OutputFile(option, is_first ? path : "", kJsonBegins);
  };
  OutputFile json = output("--json", options.json);
  OutputFile log = output("--log", options.terminal.log);
  // The run holds its checkpoint itself, but reads its data first.
  check_output(command.count("--save") > 0 ? "--save" : "--resume",
               is_first ? train_options.save : "", nullptr);
  const Dataset dataset = training_data(command, options);
  if (is_first) say_remarks(dataset.remarks, options.terminal.quiet);
  const RunResult result = train_on_terminal(dataset, train_options, options.terminal, log);
  if (!is_first) return;
  if (!options.terminal.quiet && options.json != "-") {
    print_summary(result, dataset_line(dataset, train_options));
    if (!train_options.save.empty())
      print_lines(stdout, "  saved          {}\n", printable(train_options.save));
  }
  json.write(to_json(result));
}

void run_eval(const CLI::App& command, const std::string& path, CommonOptions& options) {
  apply(options);
  const SavedRun run(path);
  const TableSchema schema = adopt_scored_data(given_on(command), run, options);
  std::vector<InputFile> inputs = input_files(options);
  inputs.push_back({"the checkpoint", path});
  check_no_input("--json", options.json, inputs);
  OutputFile json("--json", options.json, kJsonBegins);
  Dataset dataset = open_scored_data(given_on(command), run, options, schema);
  say_remarks(dataset.remarks, false);
  const Evaluation evaluation = evaluate_checkpoint(run, dataset);
  if (options.json != "-") {
    const bool all = evaluation.all_rows;
    const std::string rows = evaluation.metric == Metric::kBitsPerByte ? "windows" : "rows";
    print_lines(stdout, "{}: {} on {}, step {}: {}{} {}{} ({}{} {})\n", printable(path),
                evaluation.recipe, options.train.data, evaluation.steps, all ? "" : "test ",
                to_text(evaluation.metric), score_text(evaluation.metric, evaluation.scores.score),
                error_text(evaluation.scores.mae, evaluation.scores.r2, evaluation.scores.nats),
                all ? "all " : "", evaluation.rows, all ? rows : "test " + rows);
    if (const auto& confusion = evaluation.confusion) {
      print_lines(stdout, "balanced accuracy {:.2f} %, the mean over the classes\n\n{}",
                  100.0 * confusion->balanced_accuracy(), confusion_table(*confusion));
    }
  }
  json.write(to_json(evaluation));
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("train", "train one model; say how good and how big it is");
  auto options = std::make_shared<CommonOptions>();
  TrainOptions& train = options->train;
  add_data_options(*command, *options);
  add_training_options(*command, *options, true);
  const auto timeout = std::make_shared<std::string>();
  command->add_option("--dp-timeout", *timeout,
                      "seconds to wait for another rank before giving up; a minute or more until "
                      "all have begun [60]");
  command->add_option("--save", train.save, "checkpoint FILE, written after every epoch");
  command->add_option("--save-every", train.save_every, "also save every so many steps")
      ->check(in_range(1, 2000000000));
  command->add_option(
      "--resume", train.resume,
      "continue from checkpoint FILE, bit for bit; saves back to it unless --save names "
      "another; other --epochs than before stretch the schedule of rates");
  command->add_option("--stop-after", train.stop_after, "stop after so many steps in all, and save")
      ->check(in_range(1, 2000000000));
  command->add_option("--log", options->terminal.log,
                      "write one JSON object per epoch to FILE.jsonl");
  command->footer(
      "Examples:\n"
      "  tritgrad train --data wdbc --model mlp:64,64 --recipe votes --folds 5 --json -\n"
      "  tritgrad train --data mnist --model mlp:512,512 --recipe latent8 --epochs 3 --save "
      "m.safetensors\n"
      "  tritgrad train --data fashion-mnist --model conv:16,M,32,M --recipe latent8 --epochs 3\n"
      "  mpirun -n 2 tritgrad train --data mnist --recipe votes --dp votes\n"
      "  zcat table.csv.gz | tritgrad train --data - --label diagnosis\n"
      "  tritgrad train --data table.csv --label diagnosis --recipe votes --set "
      "weight.threshold=31");
  command->callback([command, options, timeout] { run_train(*command, *options, *timeout); });
}

void add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "score a checkpoint on test rows");
  auto options = std::make_shared<CommonOptions>();
  auto path = std::make_shared<std::string>();
  command->add_option("CHECKPOINT", *path, "file written by train --save")->required();
  add_data_options(*command, *options);
  command->add_option("--json", options->json,
                      "write the result as JSON to FILE, - = standard output");
  command->footer(
      "Example:\n  tritgrad eval m.safetensors\n"
      "The data are those that the checkpoint was trained on, and refused if they have changed\n"
      "since, unless --data names them or others. Of the training data the test rows are scored,\n"
      "of others all rows, or their published test rows.");
  command->callback([command, options, path] { run_eval(*command, *path, *options); });
}

}  // namespace tritgrad
