// tritgrad generate lets a language model write on.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>

#include "engine/check.h"
#include "engine/clock.h"
#include "engine/memory/parallel.h"
#include "engine/text.h"
#include "models/generation/text_generator.h"
#include "models/training/saved_run.h"
#include "tools/bench/ceilings.h"
#include "tools/cli/command_line.h"
#include "tools/cli/commands.h"
#include "tools/cli/common_options.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/terminal.h"
#include "tools/report/number_text.h"

namespace tritgrad {
namespace {

struct GenerateOptions {
  std::string checkpoint;
  std::string prompt = "-";
  std::int64_t length = 256;
  SamplerSpec sampler;
  int threads = 0;
  bool quiet = false;
};

std::string prompt_of(const std::string& prompt) {
  if (prompt != "-") return prompt;
  std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  // What `echo` adds is not meant.
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// Returns the bytes that are read for a token which looks at so many: all matrices, a row of the
// embedding, keys and values.
double bytes_per_token(const Llama& model, double looked_at) {
  const LlamaSpec& spec = model.spec();
  const double numbers = 2.0 * static_cast<double>(spec.layers * spec.kv_width());
  double bytes = looked_at * numbers * sizeof(float);
  for (const Parameter& parameter : model.parameters()) {
    const auto size = static_cast<double>(bytes_of(parameter.storage()));
    const bool by_row = parameter.name() == "embedding.weight" && !spec.tied;
    bytes += by_row ? size / static_cast<double>(parameter.shape().rows()) : size;
  }
  return bytes;
}

// Returns what memory delivers, in bytes a second.
double memory_rate() {
  const std::unique_ptr<Measurement> read = measurement_of(Ceiling::kDramRead);
  for (int round = 0; round < 3; ++round) read->measure();
  return 1e9 * read->entry({}).json.at("value").get<double>();
}

// `looked_at` is the mean over the tokens.
void print_speed(const Llama& model, std::int64_t tokens, double looked_at, double seconds) {
  const double rate = static_cast<double>(tokens) / seconds;
  const double bytes = bytes_per_token(model, looked_at);
  const double share = rate * bytes / memory_rate();
  fmt::print(stderr, "{} tokens, {:.0f} a second; {} read for each = {:.2f} GB/s, {}\n", tokens,
             rate, human_bytes(bytes), 1e-9 * rate * bytes,
             share > 1.0 ? "from caches, more than memory delivers"
                         : fmt::format("{:.0f} % of what memory delivers", 100.0 * share));
}

void run_generate(const GenerateOptions& options) {
  if (options.threads > 0) set_thread_count(options.threads);
  const SavedRun saved(options.checkpoint);
  TextGenerator generator(saved, options.sampler);
  const std::string prompt = prompt_of(options.prompt);
  generator.read(prompt);
  const InterruptWatch watch;
  std::fwrite(prompt.data(), 1, prompt.size(), stdout);
  const Clock::time_point start = Clock::now();
  std::int64_t written = 0, looked_at = 0;
  while (written < options.length && !watch.interrupted()) {
    const std::string_view bytes = generator.next();
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    check(std::fflush(stdout) == 0, "standard output cannot be written");
    ++written;
    looked_at += generator.looked_at();
  }
  const double seconds = seconds_since(start);
  std::fputc('\n', stdout);
  if (options.quiet || written == 0) return;
  const double mean = static_cast<double>(looked_at) / static_cast<double>(written);
  print_speed(generator.model(), written, mean, seconds);
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "let a language model write on");
  auto options = std::make_shared<GenerateOptions>();
  command->add_option("CHECKPOINT", options->checkpoint, "file written by train --save")
      ->required();
  command->add_option("--prompt", options->prompt,
                      "TEXT to go on from, - = standard input, less the end of its last line [-]");
  command->add_option("--length", options->length, "tokens to write [256]")
      ->check(in_range<std::int64_t>(1, 1'000'000'000));
  command->add_option("--temperature", options->sampler.temperature,
                      "logits are divided by it; 0: always the most likely token [0.8]");
  command
      ->add_option("--top-k", options->sampler.top_k,
                   "draw from so many of the most likely tokens, 0 = all [0]")
      ->check(in_range<std::int64_t>(0, INT64_MAX));
  command->add_option("--top-p", options->sampler.top_p,
                      "draw from the most likely tokens that together have this probability [1]");
  command->add_option("--seed", options->sampler.seed, "what is drawn [1]")
      ->check(in_range<std::uint64_t>(0, UINT64_MAX));
  command->add_option("--threads", options->threads, "threads; tokens do not depend on it [all]")
      ->check(in_range(1, 1024));
  command->add_flag("--quiet", options->quiet, "no line on the speed");
  command->footer(
      "Examples:\n"
      "  tritgrad generate lm.safetensors --prompt 'Fellow citizens, '\n"
      "  echo 'The state of ' | tritgrad generate lm.safetensors --length 64 --temperature 0");
  command->callback([options] { run_generate(*options); });
}

}  // namespace tritgrad
