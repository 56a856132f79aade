// Convolutional networks: specs, bytes, learning, checkpoints.
#include <nlohmann/json.hpp>

#include "engine/files/safetensors.h"
#include "engine/memory/parallel.h"
#include "models/footprint.h"
#include "models/networks/conv_spec.h"
#include "models/training/evaluate.h"
#include "models/training/train.h"
#include "tests/support/rewritten_checkpoint.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_conv_net {
namespace {

// Images of one bright bar, lying (class 0) or standing (class 1), anywhere, and noise. In square
// images every pixel has the same mean in both classes, so no linear classifier tells them apart.
Dataset bars(const ImageShape& image, std::int64_t rows) {
  Dataset data;
  data.name = "bars";
  data.allocate(rows, image.size(), Element::kFloat32);
  data.image = image;
  data.class_names = {"lying", "standing"};
  const std::vector<float> noise = numbers(rows * image.size(), 8);
  float* x = data.values.as<float>();
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t label = i % 2;
    const std::int64_t at = i / 2 % (label == 0 ? image.height : image.width);
    for (std::int64_t pixel = 0; pixel < image.height * image.width; ++pixel) {
      const std::int64_t place = label == 0 ? pixel / image.width : pixel % image.width;
      for (std::int64_t c = 0; c < image.channels; ++c) {
        const std::int64_t number = i * image.size() + pixel * image.channels + c;
        x[number] = (place == at ? 1.0f : 0.0f) + 0.4f * noise[static_cast<std::size_t>(number)];
      }
    }
    data.labels.push_back(static_cast<std::int32_t>(label));
  }
  return data;
}

TrainOptions options_for(const std::string& recipe) {
  TrainOptions options;
  options.data = "bars";
  options.model = "conv:8,M,16";
  options.recipe = recipe;
  options.epochs = 6;
  options.batch = 20;
  return options;
}

}  // namespace

TEST_CASE("conv net: a spec is read") {
  const ConvNetSpec spec = parse_conv("conv:32,M,64");
  using Kind = ConvLayer::Kind;
  CHECK(spec.layers == std::vector<ConvLayer>{
                           {Kind::kConvolution, 32}, {Kind::kMaxPool}, {Kind::kConvolution, 64}});
  CHECK(spec.image == ImageShape{});
  const ConvNetSpec full = parse_conv("conv:32x30x3-8-M-10");
  CHECK(full.image == ImageShape{32, 30, 3});
  CHECK(full.outputs == 10);
  CHECK(full.layers == std::vector<ConvLayer>{{Kind::kConvolution, 8}, {Kind::kMaxPool}});
  CHECK(parse_conv("conv:8,16/2").layers ==
        std::vector<ConvLayer>{{Kind::kConvolution, 8}, {Kind::kConvolution, 16, 2}});
  const ConvNetSpec dense = parse_conv("conv:8x8x1-4-R-F16-F9-10:dropout=0.25");
  CHECK(dense.layers ==
        std::vector<ConvLayer>{
            {Kind::kConvolution, 4}, {Kind::kResidual}, {Kind::kDense, 16}, {Kind::kDense, 9}});
  CHECK(dense.outputs == 10);
  CHECK(dense.dropout == 0.25f);
  CHECK(parse_conv("conv:4,F16").dropout == 0.0f);
}

TEST_CASE("conv net: a spec is refused with the part that is wrong") {
  const auto message = [](const char* text) { return refusal([&] { parse_conv(text); }); };
  CHECK(message("conv:32,m") ==
        "model 'conv:32,m': width 'm' is not a whole number in 1..16777216, nor M, which is max "
        "pooling, R, a residual block, or F and the width of a dense layer");
  CHECK(contains(message("conv:32x32-8-10"),
                 "'32x32' found before the first '-', an image HEIGHTxWIDTHxCHANNELS"));
  CHECK(contains(message("conv:M,M"), "it has no convolution"));
  CHECK(message("conv:8:norm=none") ==
        "model 'conv:8:norm=none': unknown option 'norm'; known: dropout");
  CHECK(message("conv:8,M:dropout=0.5") ==
        "model 'conv:8,M:dropout=0.5': dropout stands behind dense layers, and there are none; "
        "leave it out, or add one, as in conv:32,M,F128:dropout=0.2");
  CHECK(
      message("conv:8,R:dropout=0.1,M,F16") ==
      "model 'conv:8,R:dropout=0.1,M,F16': option 'dropout=0.1,M,F16' holds layers; options stand "
      "at the end, behind all of them, as in conv:32,M,F128:dropout=0.2");
  CHECK(message("conv:8,F4:dropout=1") ==
        "model 'conv:8,F4:dropout=1': dropout '1' is not a number in [0, 1)");
  CHECK(message("conv:16,F8:dropout=-0.1") ==
        "model 'conv:16,F8:dropout=-0.1': dropout '-0.1' is not a number in [0, 1)");
  CHECK(parse_conv("conv:16,F8:dropout=1e-1").dropout == 0.1f);
  CHECK(contains(message("conv:8,F4:dropout=0:dropout=0"), "'dropout' is named twice"));
  CHECK(message("conv:F64,8") ==
        "model 'conv:F64,8': a dense layer (F) stands before any convolution; begin with one, as "
        "in conv:32,M,F128, or use mlp:WIDTH,...");
  CHECK(message("conv:R,8") ==
        "model 'conv:R,8': a residual block (R) stands before any convolution, and has as many "
        "channels as come in; begin with a convolution, as in conv:16,R");
  CHECK(message("conv:8,F4,M") ==
        "model 'conv:8,F4,M': a convolution, R or M stands behind a dense layer (F), which leaves "
        "no image; put the dense layers last");
  CHECK(message("conv:8,16/3") ==
        "model 'conv:8,16/3': '16/3' found, a width and /2 expected, which is a convolution of "
        "stride 2");
  CHECK(contains(message("conv:8,16/"), "'16/' found, a width and /2 expected"));
  CHECK(contains(message("conv:8,M/2"), "width 'M' is not a whole number"));
  CHECK(message("conv:8,F") ==
        "model 'conv:8,F': width '' is not a whole number in 1..16777216, which behind F is that "
        "of a dense layer");
  CHECK(contains(message("conv:16777216x2x1-8-10"), "more than 16777216 pixels"));
  for (const char* bad : {"", "conv", "conv:", "conv:0", "conv:8,", "conv:-8", "conv:8x8x1-10",
                          "conv:8x8x0-4-10", "conv:8x8x1-4-M"}) {
    CAPTURE(bad);
    CHECK(message(bad) != "");
  }
  const Recipe recipe = load_recipe("fp32");
  CHECK(
      refusal([&] { plan_model("cnov:8", 0, 0, recipe); }) ==
      "model 'cnov:8': expected mlp:WIDTH,... such as mlp:512,512, conv:WIDTH,M,... such as "
      "conv:32,M,64,M, or, for text, llama:LAYERS,WIDTH such as llama:4,256; did you mean 'conv'? "
      "Known: mlp, conv, llama");
}

TEST_CASE("conv net: data that do not fit are refused with one sentence") {
  const auto message = [](const char* text, const ModelInput& input, std::int64_t outputs) {
    return refusal([&] { fit_conv(parse_conv(text), input, outputs); });
  };
  CHECK(message("conv:8,M", {80, {10, 8, 1}}, 3).empty());
  CHECK(contains(message("conv:8", 30, 2), "30 features that are no image"));
  CHECK(contains(message("conv:8", 0, 0), "images and outputs are unknown"));
  CHECK(contains(message("conv:8x10x1-4-3", {80, {10, 8, 1}}, 3),
                 "images of 8 x 10 x 1 but those of the data have 10 x 8 x 1"));
  CHECK(contains(message("conv:8x8x1-4-3", 80, 3), "8 x 8 x 1 = 64 numbers but the data has 80"));
  CHECK(contains(message("conv:8x8x1-4-3", 64, 4), "3 outputs but the data has 4 classes"));
  CHECK(message("conv:8x8x1-4-3", 64, 3).empty());  // the spec says what image they are
  CHECK(contains(message("conv:4,M,M,M,4,M", {80, {10, 8, 1}}, 3),
                 "pooling (M) leaves nothing of 1 x 1 pixels, which is what comes of images of 10 "
                 "x 8 x 1"));
}

TEST_CASE("conv net: stages, parameters and products are those of the layers") {
  const char* model = "conv:6x5x2-4-M-R-6/2-F7-F3-10";
  const ConvNetSpec spec = parse_conv(model);
  using Kind = ConvStage::Kind;
  const std::vector<ConvStage> stages = conv_stages(spec);
  REQUIRE(stages.size() == 8);
  CHECK(stages[1].kind == Kind::kMaxPool);
  CHECK(stages[2].begins_block);
  CHECK_FALSE(stages[2].ends_block);
  CHECK(stages[3].ends_block);
  CHECK(stages[4].image == ImageShape{3, 2, 4});
  CHECK(stages[5].kind == Kind::kDense);
  CHECK(stages[5].image == ImageShape{2, 1, 6});
  CHECK(stages[6].image == ImageShape{1, 1, 7});
  CHECK(stages[7].kind == Kind::kOutput);
  const Recipe recipe = load_recipe("fp32");
  std::string shapes;
  for (const ParameterSpec& parameter : plan_model(model, 0, 0, recipe)) {
    if (parameter.role != Role::kWeight) continue;
    shapes += parameter.name + parameter.shape.str() + " ";
    CHECK(parameter.gradient_in_parts == (parameter.shape[1] == 18 || parameter.shape[1] == 36));
  }
  CHECK(shapes ==
        "layers.0.weight[4 x 18] layers.1.weight[4 x 36] layers.2.weight[4 x 36] "
        "layers.3.weight[6 x 36] layers.4.weight[7 x 12] layers.5.weight[3 x 7] "
        "head.weight[10 x 3] ");
  CHECK(products_per_row(model, 0, 0, recipe) ==
        30 * 4 * 18 + 2 * 6 * 4 * 36 + 2 * 6 * 36 + 7 * 12 + 3 * 7 + 10 * 3);
  CHECK(conv_stages(parse_conv("conv:6x5x2-4-10"))[1].kind == Kind::kAveragePool);
}

// Of 120 rows half are right by chance, give or take a standard deviation of .5 / sqrt(120) = .046:
// four of those above it.
constexpr double kGuessing = 0.5 + 4.0 * 0.046;

TEST_CASE("conv net: it learns what an untrained one does not know, whatever the recipe") {
  const Dataset data = bars({9, 9, 1}, 600);
  const Split split = fixed_split(data);
  const Standardizer standardizer = Standardizer::fit(data, split.train);
  for (const std::string& recipe : recipe_names()) {
    for (const char* model : {"conv:8,M,16", "conv:8,16/2,R,F24"}) {
      CAPTURE(recipe);
      CAPTURE(model);
      TrainOptions options = options_for(recipe);
      options.model = model;
      if (recipe == "microadam") options.epochs = 12;  // it moves one weight in a hundred a step
      const auto untrained = make_model(options.model, data, 2, load_recipe(recipe), options.seed);
      Tape tape;
      CHECK(evaluate(*untrained, tape, Classification(data, standardizer), split.test)->score <
            kGuessing);
      const RunResult result = train(data, options);
      // 114 of 120 rows. (Measured: microadam 115, all others 117 or more.)
      CHECK(result.test_score.value() >= 0.95);
    }
  }
  TrainOptions linear = options_for("fp32");
  linear.model = "mlp:";
  CHECK(train(data, linear).test_score.value() < kGuessing);
}

TEST_CASE("conv net: the same bits for any number of threads, for kept and released gradients") {
  const Dataset data = bars({11, 10, 2}, 60);
  for (const char* recipe : {"latent8", "votes", "master", "eco", "flash-adamw"}) {
    const bool integers = load_recipe(recipe).compute == Compute::kInt8;
    for (const char* compute : {"compute=fp32", "compute=int8"}) {
      if (!integers && compute == std::string("compute=int8")) continue;
      CAPTURE(std::string(recipe));
      for (const char* model : {"conv:24,M,80,M,8", "conv:24,R,16/2,R,F40:dropout=0.2"}) {
        CAPTURE(std::string(model));
        TrainOptions options = options_for(recipe);
        options.model = model;
        options.epochs = 2;
        options.overrides = {compute, "gradients=kept", "gradient_format=fp32"};
        set_thread_count(1);
        const std::string expected = train(data, options).weights_sha256;
        set_thread_count(3);
        CHECK(train(data, options).weights_sha256 == expected);
        options.overrides = {compute, "gradients=released"};
        CHECK(train(data, options).weights_sha256 == expected);
        set_thread_count(0);
      }
    }
  }
}

// conv_norm() takes no more than 3,683 outputs; conv2d(), to which such a network is left, does.
TEST_CASE("conv net: a layer of more outputs than go in images is trained all the same") {
  TrainOptions options = options_for("latent8");
  options.epochs = 1;
  options.overrides = {"compute=int8"};
  for (const char* model : {"conv:2,3684,M", "conv:3684,M,2", "conv:2,3684"}) {
    CAPTURE(std::string(model));
    options.model = model;
    CHECK(train(bars({4, 5, 1}, 40), options).steps == 2);
  }
}

TEST_CASE("conv net: a checkpoint continues with the same bits and knows its images") {
  const TempDir folder;
  Dataset data = bars({6, 8, 1}, 200);
  for (const char* recipe : {"latent8", "master"}) {
    TrainOptions options = options_for(recipe);
    options.model = "conv:8,R,8/2,F12:dropout=0.1";
    options.epochs = 2;
    const RunResult whole = train(data, options);
    options.save = (folder / "half.safetensors").string();
    options.stop_after = 5;
    train(data, options);
    options.stop_after = 0;
    options.resume = options.save;
    const RunResult resumed = train(data, options);
    CHECK(resumed.weights_sha256 == whole.weights_sha256);
    CHECK(evaluate_checkpoint(SavedRun(options.save), data).scores.score ==
          whole.test_score.value());
    CHECK(SavedRun(options.save).model().input.image == data.image);

    Dataset turned = bars(data.image, data.rows);
    turned.image = {8, 6, 1};
    CHECK(contains(refusal([&] { evaluate_checkpoint(SavedRun(options.save), turned); }),
                   "its model read images of 6 x 8 x 1 but those of 'bars' have 8 x 6 x 1"));
    CHECK(contains(refusal([&] { train(turned, options); }), "read images of 6 x 8 x 1"));
  }
}

// With gradients kept in fp32 two parts of the batch make one step.
TEST_CASE("conv net: parts of a batch are added up, whatever the threads") {
  const Dataset data = bars({7, 6, 1}, 200);
  TrainOptions options = options_for("latent8");
  options.model = "conv:8,R,8/2,F12:dropout=0.1";
  options.overrides = {"gradients=kept"};
  options.micro_batches = 5;
  options.batch = 40;
  set_thread_count(1);
  const RunResult one = train(data, options);
  set_thread_count(3);
  CHECK(train(data, options).weights_sha256 == one.weights_sha256);
  set_thread_count(0);
  CHECK(one.test_score.value() > kGuessing);
}

TEST_CASE("conv net: checkpoints of before the shape of images was saved are read") {
  const TempDir folder;
  Dataset data = bars({6, 8, 1}, 200);
  TrainOptions options = options_for("latent8");
  options.model = "mlp:16";
  options.save = (folder / "new.safetensors").string();
  const RunResult result = train(data, options);
  const std::string old = (folder / "old.safetensors").string();
  rewrite_checkpoint(options.save, old,
                     [](nlohmann::json& run) { REQUIRE(run.erase("image") == 1); });
  CHECK(SavedRun(old).model().input.image == ImageShape{});
  CHECK(evaluate_checkpoint(SavedRun(old), data).scores.score == result.test_score.value());
}

TEST_CASE("conv net: gradients of convolutions are forecast as what they are, in memory") {
  const char* model = "conv:8x8x1-16-M-32-10";
  const auto transient = [&](const char* recipe) {
    const Recipe loaded = load_recipe(recipe);
    return forecast_footprint(plan_model(model, 0, 0, loaded), loaded).transient_gradient;
  };
  // The second convolution: 9 * 16 * 32 weights, and a scale for each output.
  CHECK(transient("latent8") == 4 * (9 * 16 * 32 + 32));
  CHECK(transient("flash-adamw") == 4 * 9 * 16 * 32);
}

}  // namespace tritgrad::test::test_conv_net
