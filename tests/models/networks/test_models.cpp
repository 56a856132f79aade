// Model specs, recipes, and the forecast of bytes.
#include "models/footprint.h"
#include "models/networks/mlp.h"
#include "ops/loss.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_models {
namespace {

// Returns how a recipe updates the parameter of that name.
GroupSpec update_of(const Recipe& recipe, const char* name, Role role = Role::kWeight) {
  ParameterSpec parameter;
  parameter.name = name;
  parameter.role = role;
  return recipe.updates()(parameter);
}

}  // namespace

TEST_CASE("models: a spec is read, and refused with the part that is wrong") {
  const MlpSpec spec = parse_mlp("mlp:64,32:norm=layer:activation=tanh:dropout=0.1");
  CHECK(spec.hidden == std::vector<std::int64_t>{64, 32});
  CHECK(spec.norm == Norm::kLayer);
  CHECK(spec.activation == Activation::kTanh);
  CHECK(spec.dropout == 0.1f);
  CHECK(spec.inputs == 0);
  const MlpSpec full = parse_mlp("mlp:784-512-10");
  CHECK(full.inputs == 784);
  CHECK(full.hidden == std::vector<std::int64_t>{512});
  CHECK(full.outputs == 10);
  CHECK(parse_mlp("mlp:").hidden.empty());

  CHECK(refusal([] { parse_mlp("cnn:64"); }) ==
        "model 'cnn:64' is no perceptron; expected mlp:WIDTH,WIDTH,... such as mlp:512,512");
  CHECK(refusal([] { parse_mlp("mlp:64,x"); }) ==
        "model 'mlp:64,x': width 'x' is not a whole number in 1..16777216");
  CHECK(refusal([] { parse_mlp("mlp:64:nrom=batch"); }).find("did you mean") != std::string::npos);
  CHECK(refusal([] { parse_mlp("mlp:64:norm=bath"); }).find("did you mean") != std::string::npos);
  for (const char* bad :
       {"mlp:0", "mlp:-1", "mlp:64,", "mlp:99999999999999999999", "mlp:8:dropout=1",
        "mlp:8:norm=rms:norm=rms", "mlp:8:dropout=", "", "mlp"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_mlp(bad), Error);
  }
  CHECK(refusal([&] { fit_mlp(full, 30, 2); }) ==
        "model: it has 784 inputs but the data has 30 features; leave the width out or correct it");
  CHECK_THROWS_AS(fit_mlp(spec, 0, 0), Error);
}

TEST_CASE("models: built-in recipes are complete, and their text reads back as the same recipe") {
  for (const std::string& name : recipe_names()) {
    CAPTURE(name);
    const Recipe recipe = load_recipe(name);
    CHECK(recipe.name == name);
    CHECK_FALSE(recipe.summary.empty());
    CHECK_FALSE(recipe.source.empty());
    const Recipe again = parse_recipe(recipe.toml, "again");
    CHECK(again.toml == recipe.toml);
    CHECK(again.group(Role::kWeight).format.kind == recipe.group(Role::kWeight).format.kind);
    CHECK(again.group(Role::kScale).update.lr == recipe.group(Role::kScale).update.lr);
  }
}

TEST_CASE("models: recipes are overridden by key=value and by files") {
  const Recipe recipe = load_recipe(
      "votes", {"weight.lr=0.125", "weight.on_flip=reset", "scale.lr=0.5", "weight.schedule=wsd"});
  CHECK(recipe.group(Role::kWeight).update.lr == 0.125);
  CHECK(recipe.group(Role::kWeight).format.flips.on_flip == OnFlip::kReset);
  CHECK(recipe.group(Role::kWeight).update.schedule.kind == Schedule::Kind::kWarmupStableDecay);
  CHECK(recipe.group(Role::kScale).update.lr == 0.5);
  CHECK(recipe.group(Role::kBias).update.lr == load_recipe("votes").group(Role::kBias).update.lr);

  const TempDir folder;
  const std::string path =
      folder.write("mine.toml", "base = \"latent8\"\nname = \"mine\"\n[weight]\nlr = 0.25\n");
  const Recipe mine = load_recipe(path);
  CHECK(mine.name == "mine");
  CHECK(mine.group(Role::kWeight).update.lr == 0.25);
  CHECK(mine.group(Role::kWeight).format.kind == FormatKind::kLatent8);
  folder.write("mine.toml", "name = \"mine\"\n[weight\n");
  CHECK(contains(refusal([&] { load_recipe(path); }), "line 2"));
}

TEST_CASE("models: head_lr is the rate of the head's matrix alone, as a share of lr") {
  const Recipe recipe = load_recipe("latent8", {"weight.lr=0.5", "weight.head_lr=0.25"});
  const auto lr = [](const Recipe& of, const char* name, Role role) {
    return update_of(of, name, role).lr;
  };
  CHECK(lr(recipe, "head.weight", Role::kWeight) == 0.125);
  CHECK(lr(recipe, "layers.0.weight", Role::kWeight) == 0.5);
  CHECK(lr(recipe, "head.bias", Role::kBias) == recipe.group(Role::kBias).update.lr);
  CHECK(lr(recipe, "head.scale", Role::kScale) == recipe.group(Role::kScale).update.lr);
  CHECK(lr(load_recipe("latent8", {"weight.lr=0.5"}), "head.weight", Role::kWeight) == 0.5);
}

TEST_CASE("models: the head of votes moves at a tenth of the rate, a trit is 253 levels") {
  const Recipe votes = load_recipe("votes");
  const double lr = votes.group(Role::kWeight).update.lr;
  CHECK(update_of(votes, "head.weight").lr == 0.1 * lr);
  CHECK(update_of(votes, "layers.1.weight").lr == lr);
  CHECK(votes.group(Role::kWeight).format.flips.threshold == 126);
}

TEST_CASE("models: recipe errors name the key, what was found and what is accepted") {
  const auto message = [](const std::string& override_text) {
    return refusal([&] { load_recipe("votes", {override_text}); });
  };
  CHECK(message("weight.lrr=1").find("did you mean 'lr'") != std::string::npos);
  CHECK(message("weight.lr=fast").find("'lr' has the wrong type; expected a number") !=
        std::string::npos);
  CHECK(message("weight.format=ternery").find("did you mean 'ternary'") != std::string::npos);
  CHECK(message("weight.threshold=127").find("threshold = 127 is outside 0..126") !=
        std::string::npos);
  CHECK(message("scale.format=ternary").find("is for weights only") != std::string::npos);
  CHECK(message("weight.format=scale16").find("is for scales") != std::string::npos);
  CHECK(message("weight.group=48").find("unknown value '48'") != std::string::npos);
  CHECK(message("weight.lr=-1").find("lr = -1") != std::string::npos);
  CHECK(message("clip_grad_norm=1").find("set gradients = \"kept\"") != std::string::npos);
  CHECK(message("weight.momentum=0.9").find("weight.momentum has no effect") != std::string::npos);
  CHECK(refusal([] { load_recipe("latent8", {"weight.threshold=31"}); }).find("no effect") !=
        std::string::npos);
  CHECK(refusal([] { load_recipe("fp32", {"weight.group=32"}); }).find("no effect") !=
        std::string::npos);
  CHECK(message("weight").find("not of the form key=value") != std::string::npos);
  CHECK(refusal([] { load_recipe("vote"); }).find("did you mean 'votes'") != std::string::npos);
  CHECK(refusal([] {
          load_recipe("/nowhere/x.toml");
        }).find("cannot read /nowhere/x.toml: there is no such file") != std::string::npos);
}

TEST_CASE("models: the forecast equals live bytes, for every recipe, group and norm") {
  for (const std::string& name : recipe_names()) {
    for (const char* model :
         {"mlp:30-64-64-2", "mlp:7-5-3:norm=layer", "mlp:321-40-10:norm=none",
          "mlp:64-33-2:norm=rms", "conv:9x7x3-8-M-40-4", "conv:9x7x3-8-R-40/2-F30-4"}) {
      for (const char* group : {"row", "32"}) {
        CAPTURE(name);
        CAPTURE(model);
        const bool grouped = load_recipe(name).group(Role::kWeight).format.traits().holds_trits;
        if (!grouped && group != std::string("row")) continue;
        const Recipe recipe =
            grouped ? load_recipe(name, {std::string("weight.group=") + group}) : load_recipe(name);
        const ModelFootprint forecast = forecast_footprint(plan_model(model, 0, 0, recipe), recipe);
        const Footprint before = ledger_footprint();
        const auto live_model = make_model(model, 0, 0, recipe, 1);
        Optimizer optimizer = make_optimizer(*live_model, recipe, 10, 1);
        const ModelFootprint live = live_footprint(*live_model, optimizer, recipe);
        const Footprint held = ledger_footprint(before);
        CHECK(forecast.total == live.total);
        CHECK(forecast.total == held);
        CHECK(forecast.parameters == live_model->parameters().parameter_count());
      }
    }
  }
}

TEST_CASE("models: a step leaves nothing behind but what is declared and a constant a matrix") {
  // A bit for each weight, kept on the side, would be 131072 bytes.
  const std::string spec = "mlp:1024-1024-2:norm=none";
  const std::vector<float> x = numbers(1024, 3);
  const std::vector<std::int32_t> labels = {1};
  std::vector<std::string> names = recipe_names();
  for (std::string& name : language_recipe_names()) names.push_back(std::move(name));
  for (const std::string& name : names) {
    CAPTURE(name);
    const Recipe recipe = load_recipe(name);
    const bool released = recipe.gradients == GradientPolicy::kReleased;
    const std::vector<ParameterSpec> plan = plan_model(spec, 0, 0, recipe);
    const std::int64_t declared = forecast_footprint(plan, recipe).total.total();
    const std::int64_t before = ledger::live_total();
    const auto model = make_model(spec, 0, 0, recipe, 1);
    Optimizer optimizer = make_optimizer(*model, recipe, 10, 1);
    {
      Tape tape;
      const Tensor row{const_cast<float*>(x.data()), {1, 1024}};
      const Var loss =
          softmax_cross_entropy(tape, model->forward(tape, row, {.training = true}), labels);
      tape.backward(loss, [&](Parameter& p) {
        if (released) optimizer.step(p);
      });
      if (!released) optimizer.step();
      optimizer.advance();
    }
    const std::int64_t held = ledger::live_total() - before;
    // Constants are the sample that is watched of a matrix (StalledUpdates::kMaxBytes), and the
    // sums of every moment that is stored as one number, or as one for each row and column.
    std::int64_t constant = 0;
    for (const Parameter& p : model->parameters()) {
      if (!p.spec().trainable()) continue;
      const GroupSpec& group = optimizer.group(p);
      if (p.spec().role == Role::kWeight) constant += StalledUpdates::kMaxBytes;
      for (std::size_t i = 0; i < make_rule(group.rule)->moments().size(); ++i) {
        // A sum and the number of its elements.
        const FormatKind kind = optimizer.moment(p, i).spec().kind;
        if (kind == FormatKind::kScalar) constant += kSlots * std::int64_t{2 * sizeof(double)};
        if (kind == FormatKind::kFactored) {
          constant += p.shape().rows() * std::int64_t{sizeof(double)} +
                      most_slots(p.shape()) * p.shape().cols() * std::int64_t{sizeof(float)};
        }
      }
    }
    CHECK(held >= declared);
    CHECK(held <= declared + constant);
  }
}

TEST_CASE("models: bytes per parameter of 784-512-512-10 keep their promises") {
  const auto footprint = [](const char* name) {
    const Recipe recipe = load_recipe(name);
    return forecast_footprint(plan_model("mlp:784-512-512-10", 0, 0, recipe), recipe);
  };
  const ModelFootprint votes = footprint("votes");
  CHECK(votes.per_parameter(votes.total.weights + votes.total.scales + votes.total.residual) <=
        1.30);
  for (const TensorFootprint& t : votes.tensors) {
    if (t.spec.role == Role::kWeight) CHECK(t.bytes.moments == 0);
  }
  const ModelFootprint latent8 = footprint("latent8");
  CHECK(latent8.per_parameter(latent8.total.total()) <= 1.10);
  // With moments of scales, norms and biases in fp32 these would be 0.815 and 0.268.
  const ModelFootprint latent6 = footprint("latent6");
  CHECK(latent6.per_parameter(latent6.total.total()) <= 0.80);
  const ModelFootprint trits = footprint("trits");
  CHECK(trits.per_parameter(trits.total.total()) <= 0.25);
  const ModelFootprint master = footprint("master");
  CHECK(master.per_parameter(master.total.total() - master.total.gradients) ==
        doctest::Approx(12.0).epsilon(0.002));
  CHECK(master.per_parameter(master.total.total()) == doctest::Approx(16.0).epsilon(0.002));
}

TEST_CASE("models: bytes per parameter of wide networks keep their promises") {
  const auto state = [](const char* name) {
    const Recipe recipe = load_recipe(name);
    const ModelFootprint f =
        forecast_footprint(plan_model("mlp:4096-4096-4096-4096", 0, 0, recipe), recipe);
    return f.per_parameter(f.total.total() - f.total.gradients);
  };
  const auto total = [](const char* name) {
    const Recipe recipe = load_recipe(name);
    const ModelFootprint f =
        forecast_footprint(plan_model("mlp:4096-4096-4096-4096", 0, 0, recipe), recipe);
    return f.per_parameter(f.total.total());
  };
  CHECK(total("flash-adamw") <= 7.2);
  CHECK(state("flash-adamw") <= 5.2);
  CHECK(state("flash-lion") <= 5.1);
  CHECK(state("eco-adam") <= 8.2 + 0.25);  // trits and scales beside the moments
  CHECK(state("eco") <= 1.35);
  CHECK(state("microadam") <= 2.0 + 0.97 + 0.01);  // bf16 weights; 0.01 for norms and biases
  CHECK(state("microadam-ternary") <= 1.19);
  CHECK(state("latent6") <= 0.80);
  CHECK(state("latent5") <= 0.68);
  CHECK(state("latent4") <= 0.56);
  CHECK(state("shared4") <= 0.49);
  CHECK(state("shared8") <= 0.37);
  CHECK(state("shared16") <= 0.31);
  CHECK(state("trits") <= 0.25);
}

TEST_CASE("models: groups have exactly the size asked for; the last one of a row is shorter") {
  const Recipe recipe = load_recipe("votes", {"weight.group=32"});
  const auto plan = plan_model("mlp:100-8-2", 0, 0, recipe);
  CHECK(plan[1].name == "layers.0.scale");
  CHECK(plan[1].shape == Shape{8, 4});  // 32, 32, 32 and 4 inputs
  // Only the scale of the last group moves what the last four inputs give.
  const auto model = make_model("mlp:100-8-2:norm=none", 0, 0, recipe, 1);
  Storage& scale = model->parameters().find("layers.0.scale").storage();
  std::vector<float> x(100, 0.0f);
  x[95] = 1.0f;
  Tape tape;
  tape.set_recording(false);
  const auto outputs = [&] {
    const Var y = model->forward(tape, {x.data(), {1, 100}}, {});
    const std::vector<float> values(y.value.values().begin(), y.value.values().end());
    tape.reset();
    return values;
  };
  const std::vector<float> before = outputs();
  std::vector<float> changed(32);
  const std::vector<double> scales = decoded(scale, true);
  for (std::size_t i = 0; i < 32; ++i)
    changed[i] = static_cast<float>(scales[i]) * (i % 4 == 3 ? 2.0f : 1.0f);
  encode_all(scale, changed);
  CHECK(outputs() == before);  // input 95 is the last of the third group
  x[95] = 0.0f;
  x[96] = 1.0f;
  const std::vector<float> doubled = outputs();
  encode_all(scale, {scales.begin(), scales.end()});
  CHECK(outputs() != doubled);
}

TEST_CASE("models: a model nobody can allocate is forecast all the same") {
  const Recipe recipe = load_recipe("latent8");
  const std::int64_t before = ledger::live_total();
  const ModelFootprint f =
      forecast_footprint(plan_model("mlp:8192-65536-65536-32768", 0, 0, recipe), recipe);
  CHECK(f.parameters > 6'900'000'000);
  CHECK(f.per_parameter(f.total.total()) < 1.01);
  CHECK(ledger::live_total() == before);
}

TEST_CASE("models: equal seeds make equal weights, other seeds other ones") {
  const Recipe recipe = load_recipe("votes");
  const auto bytes = [&](std::uint64_t seed) {
    return all_bytes(make_model("mlp:9-16-3", 0, 0, recipe, seed)
                         ->parameters()
                         .find("layers.0.weight")
                         .storage());
  };
  CHECK(bytes(1) == bytes(1));
  CHECK(bytes(1) != bytes(2));
}

}  // namespace tritgrad::test::test_models
