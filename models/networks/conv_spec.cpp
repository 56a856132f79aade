#include "models/networks/conv_spec.h"

#include "engine/check.h"
#include "engine/text.h"
#include "models/networks/layer_plan.h"
#include "ops/conv2d.h"
#include "ops/pool.h"

namespace tritgrad {
namespace {

std::string describe(const ImageShape& image) {
  return concat(image.height, " x ", image.width, " x ", image.channels);
}

ImageShape parse_image(const std::string& text, const std::string& where) {
  const std::vector<std::string> sides = split(text, 'x');
  check(sides.size() == 3, "model '", where, "': '", text,
        "' found before the first '-', an image HEIGHTxWIDTHxCHANNELS such as 32x32x3 expected");
  const ImageShape image{parse_width(sides[0], where), parse_width(sides[1], where),
                         parse_width(sides[2], where)};
  constexpr std::int64_t kMostPixels = 1 << 24;
  check(image.height * image.width <= kMostPixels, "model '", where, "': images of ", text,
        " have more than ", kMostPixels, " pixels");
  return image;
}

ConvLayer parse_layer(const std::string& part, const std::string& where) {
  using Kind = ConvLayer::Kind;
  if (part == "M") return {Kind::kMaxPool};
  if (part == "R") return {Kind::kResidual};
  if (part.starts_with('F')) {
    return {Kind::kDense,
            parse_width(part.substr(1), where, ", which behind F is that of a dense layer")};
  }
  const std::size_t slash = part.find('/');
  check(slash == std::string::npos || part.substr(slash) == "/2", "model '", where, "': '", part,
        "' found, a width and /2 expected, which is a convolution of stride 2");
  return {Kind::kConvolution,
          parse_width(part.substr(0, slash), where,
                      ", nor M, which is max pooling, R, a residual block, or F and the width of a "
                      "dense layer"),
          slash == std::string::npos ? 1 : 2};
}

// Throws Error for layers that have no meaning where they stand.
void check_order(const std::vector<ConvLayer>& layers, const std::string& where) {
  using Kind = ConvLayer::Kind;
  bool convolves = false, is_dense = false;
  for (const ConvLayer& layer : layers) {
    convolves |= layer.kind == Kind::kConvolution;
    check(convolves || layer.kind != Kind::kDense, "model '", where,
          "': a dense layer (F) stands before any convolution; begin with one, as in "
          "conv:32,M,F128, or use mlp:WIDTH,...");
    check(convolves || layer.kind != Kind::kResidual, "model '", where,
          "': a residual block (R) stands before any convolution, and has as many channels as come "
          "in; begin with a convolution, as in conv:16,R");
    is_dense |= layer.kind == Kind::kDense;
    check(!is_dense || layer.kind == Kind::kDense, "model '", where,
          "': a convolution, R or M stands behind a dense layer (F), which leaves no image; put "
          "the dense layers last");
  }
  check(convolves, "model '", where,
        "': it has no convolution; expected a width at least, such as conv:32,M");
}

// What an image becomes that is read as a row of numbers, and rows themselves.
ImageShape row_of(std::int64_t numbers) { return {1, 1, numbers}; }

}  // namespace

ConvNetSpec parse_conv(const std::string& text) {
  check(text.starts_with("conv:"), "model '", text,
        "' is no convolutional network; expected conv:WIDTH,M,... such as conv:32,M,64,M");
  const std::vector<std::string> options = split(text.substr(5), ':');
  const bool complete = options[0].find('-') != std::string::npos;
  std::vector<std::string> parts = split(options[0], complete ? '-' : ',');
  ConvNetSpec spec;
  if (complete) {
    spec.image = parse_image(parts.front(), text);
    spec.outputs = parse_width(parts.back(), text);
    parts = {parts.begin() + 1, parts.end() - 1};
  }
  for (const std::string& part : parts) spec.layers.push_back(parse_layer(part, text));
  check_order(spec.layers, text);
  const bool is_dense = spec.layers.back().kind == ConvLayer::Kind::kDense;
  for_each_option(text, options, [&](const std::string& key, const std::string& value) {
    check(key == "dropout", "unknown option '", key, "'",
          did_you_mean(key, std::vector<std::string>{"dropout"}));
    // A number may have a minus too.
    check(parse_number(value) || value.find_first_of(",-") == std::string::npos,
          "option 'dropout=", value,
          "' holds layers; options stand at the end, behind all of them, as in "
          "conv:32,M,F128:dropout=0.2");
    check(is_dense,
          "dropout stands behind dense layers, and there are none; leave it out, or add one, as in "
          "conv:32,M,F128:dropout=0.2");
    spec.dropout = parse_dropout(value);
  });
  return spec;
}

ConvNetSpec fit_conv(ConvNetSpec spec, const ModelInput& input, std::int64_t outputs) {
  const bool from_data = input.image.size() > 0;
  const bool from_spec = spec.image.size() > 0;
  check(from_data || from_spec || input.features == 0, "model: the data has ", input.features,
        " features that are no image; a convolutional network needs images such as mnist's; use "
        "mlp:WIDTH,... or say what image they are, as in conv:8x8x1-16-M-10");
  check(from_data || from_spec,
        "model: images and outputs are unknown; give all of it, such as "
        "conv:32x32x3-32-M-64-M-10, or name the data");
  check(!from_data || !from_spec || spec.image == input.image, "model: it reads images of ",
        describe(spec.image), " but those of the data have ", describe(input.image),
        "; leave the image out or correct it");
  check(!from_spec || input.features == 0 || spec.image.size() == input.features,
        "model: it reads images of ", describe(spec.image), " = ", spec.image.size(),
        " numbers but the data has ", input.features, " features");
  check(spec.outputs == 0 || outputs == 0 || spec.outputs == outputs, "model: it has ",
        spec.outputs, " outputs but the data has ", outputs,
        " classes; leave them out or correct them");
  if (from_data) spec.image = input.image;
  if (outputs > 0) spec.outputs = outputs;
  check(spec.outputs > 0, "model: the number of classes is unknown; name the data");
  conv_stages(spec);
  return spec;
}

ImageShape ConvStage::result() const {
  switch (kind) {
    case Kind::kConvolution:
      return convolved(image, {kConvWindow, stride}, outputs);
    case Kind::kMaxPool:
      return pooled(image);
    case Kind::kAveragePool:
      return row_of(image.channels);
    default:
      return row_of(outputs);
  }
}

std::int64_t ConvStage::inputs() const {
  return kind == Kind::kConvolution ? kConvWindow * kConvWindow * image.channels : image.size();
}

std::vector<ConvStage> conv_stages(const ConvNetSpec& spec) {
  using Kind = ConvStage::Kind;
  std::vector<ConvStage> stages;
  ImageShape image = spec.image;
  const auto append = [&](ConvStage stage) {
    stage.image = image;
    image = stage.result();
    check(image.size() > 0, "model: pooling (M) leaves nothing of ", stage.image.height, " x ",
          stage.image.width, " pixels, which is what comes of images of ", describe(spec.image),
          "; pool less often");
    stages.push_back(stage);
  };
  for (const ConvLayer& layer : spec.layers) {
    switch (layer.kind) {
      case ConvLayer::Kind::kConvolution:
        append({Kind::kConvolution, {}, layer.outputs, false, false, layer.stride});
        break;
      case ConvLayer::Kind::kMaxPool:
        append({Kind::kMaxPool, {}});
        break;
      case ConvLayer::Kind::kResidual:
        append({Kind::kConvolution, {}, image.channels, true, false});
        append({Kind::kConvolution, {}, image.channels, false, true});
        break;
      case ConvLayer::Kind::kDense:
        append({Kind::kDense, {}, layer.outputs});
    }
  }
  if (stages.back().kind != Kind::kDense) append({Kind::kAveragePool, {}});
  append({Kind::kOutput, {}, spec.outputs});
  return stages;
}

double conv_products_per_row(const ConvNetSpec& spec) {
  double products = 0.0;
  for (const ConvStage& stage : conv_stages(spec)) {
    products += static_cast<double>(stage.uses()) * static_cast<double>(stage.inputs()) *
                static_cast<double>(stage.outputs);
  }
  return products;
}

std::vector<std::int64_t> conv_uses(const ConvNetSpec& spec) {
  std::vector<std::int64_t> uses;
  for (const ConvStage& stage : conv_stages(spec)) {
    if (stage.has_product()) uses.push_back(stage.uses());
  }
  return uses;
}

}  // namespace tritgrad
