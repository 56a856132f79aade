#include "models/generation/generator.h"

#include <algorithm>

#include "engine/check.h"
#include "engine/files/checkpoint.h"

namespace tritgrad {
namespace {

// Returns the recipe with the format `trits` for all matrices that are ternary.
Recipe with_packed_trits(Recipe recipe) {
  const auto pack = [](FormatSpec& format) {
    if (format.traits().holds_trits) format.kind = FormatKind::kTrits;
  };
  pack(recipe.groups[static_cast<std::size_t>(Role::kWeight)].format);
  for (Recipe::NamedGroup& named : recipe.named_groups) {
    if (named.role == Role::kWeight) pack(named.group.format);
  }
  return recipe;
}

void copy_values(const Storage& from, Storage& to) {
  for_each_block(from.shape(), [&](const Block& block) {
    std::array<float, kBlock> values;
    from.decode_value(block, values.data());
    to.encode(block, values.data(), {});
  });
  to.refresh();
}

}  // namespace

std::unique_ptr<Llama> load_for_generation(const SavedRun& saved) {
  check(saved.is_language_model(), "checkpoint '", saved.path(),
        "': its model reads rows of features and writes no text; give the checkpoint of a language "
        "model (--model llama:...)");
  const SavedModel plan = saved.model();
  const LlamaSpec spec = fit_llama(parse_llama(plan.model), plan.input, plan.outputs);
  auto packed = std::make_unique<Llama>(spec, with_packed_trits(plan.recipe), std::nullopt);
  Llama trained(spec, plan.recipe, std::nullopt);
  saved.load_part(parameter_planes(trained.parameters()));
  auto to = packed->parameters().begin();
  for (const Parameter& from : trained.parameters()) {
    if (from.storage().spec() == to->storage().spec()) {
      const std::vector<Plane> sources = from.storage().planes(), places = to->storage().planes();
      for (std::size_t i = 0; i < sources.size(); ++i) {
        std::copy(sources[i].bytes.begin(), sources[i].bytes.end(), places[i].bytes.begin());
      }
    } else {
      copy_values(from.storage(), to->storage());
    }
    ++to;
  }
  return packed;
}

Generator::Generator(Llama& model, const SamplerSpec& spec)
    : model_(model), sampler_(spec), cache_(model.spec()) {
  tape_.set_recording(false);
}

void Generator::read(std::span<const std::int32_t> tokens) {
  const LlamaSpec& spec = model_.spec();
  check(!tokens.empty(), "the prompt is empty; give at least one token to go on from");
  check(std::ssize(tokens) + cache_.tokens() <= spec.context, "the prompt has ", tokens.size(),
        " tokens, but the model looks at ", spec.context, " together; give at most ",
        spec.context - cache_.tokens());
  for (const std::int32_t token : tokens) {
    check(token >= 0 && token < spec.vocabulary, "token ", token, " found, 0 to ",
          spec.vocabulary - 1, " expected, those of the model's vocabulary");
  }
  const Var logits = model_.read(tape_, tokens, cache_);
  logits_.assign(logits.value.data, logits.value.data + logits.value.size());
  window_.insert(window_.end(), tokens.begin(), tokens.end());
  tape_.reset();
  tape_.scratch_reset();
}

std::int32_t Generator::next() {
  check(!logits_.empty(), "nothing was read to go on from");
  const std::int32_t token = sampler_.next(logits_);
  std::vector<std::int32_t> read_next;
  if (cache_.is_full()) {
    read_next.assign(window_.end() - cache_.tokens() / 2, window_.end());
    cache_.clear();
    window_.clear();
  }
  read_next.push_back(token);
  read(read_next);
  return token;
}

}  // namespace tritgrad
