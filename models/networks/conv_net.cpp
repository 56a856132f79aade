#include "models/networks/conv_net.h"

#include "ops/bias.h"
#include "ops/conv2d.h"
#include "ops/pool.h"
#include "ops/products/linear.h"

namespace tritgrad {
namespace {

constexpr Window kWindow{3};

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

// Returns what each layer reads, and what the last one leaves.
std::vector<ImageShape> images_between(const ConvNetSpec& spec) {
  std::vector<ImageShape> images = {spec.image};
  for (const std::int64_t layer : spec.layers) {
    const ImageShape image = images.back();
    const bool pools = layer == ConvNetSpec::kMaxPool;
    images.push_back(pools ? pooled(image) : ImageShape{image.height, image.width, layer});
    check(images.back().size() > 0, "model: pooling (M) leaves nothing of ", image.height, " x ",
          image.width, " pixels, which is what comes of images of ", describe(spec.image),
          "; pool less often");
  }
  return images;
}

}  // namespace

ConvNetSpec parse_conv(const std::string& text) {
  check(text.starts_with("conv:"), "model '", text,
        "' is no convolutional network; expected conv:WIDTH,M,... such as conv:32,M,64,M");
  const std::string layers = text.substr(5);
  check(layers.find(':') == std::string::npos, "model '", text,
        "': a convolutional network has no options; leave out what follows the second ':'");
  ConvNetSpec spec;
  const bool complete = layers.find('-') != std::string::npos;
  std::vector<std::string> parts = split(layers, complete ? '-' : ',');
  if (complete) {
    spec.image = parse_image(parts.front(), text);
    spec.outputs = parse_width(parts.back(), text);
    parts = {parts.begin() + 1, parts.end() - 1};
  }
  bool convolves = false;
  for (const std::string& part : parts) {
    const bool pools = part == "M";
    convolves |= !pools;
    spec.layers.push_back(pools ? ConvNetSpec::kMaxPool
                                : parse_width(part, text, ", nor M, which is max pooling"));
  }
  check(convolves, "model '", text, "': it has no convolution; expected a width at least, such as ",
        "conv:32,M");
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
  images_between(spec);
  return spec;
}

std::vector<ParameterSpec> plan_conv(const ConvNetSpec& spec, const Recipe& recipe) {
  std::vector<ParameterSpec> plan;
  const std::vector<ImageShape> images = images_between(spec);
  std::size_t index = 0;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const std::int64_t outputs = spec.layers[i];
    if (outputs == ConvNetSpec::kMaxPool) continue;
    const std::string name = layer_name(index++);
    plan_matrix(name, kWindow.size * kWindow.size * images[i].channels, outputs, 1.0f, recipe, plan,
                GradientComes::kParts);
    plan_norm(name, Norm::kBatch, outputs, recipe, plan);
  }
  plan_matrix(kHead, images.back().channels, spec.outputs, 1.0f, recipe, plan);
  plan_bias(kHead, spec.outputs, recipe, plan);
  return plan;
}

double conv_products_per_row(const ConvNetSpec& spec) {
  const std::vector<ImageShape> images = images_between(spec);
  double products = 0.0;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {  // pooling has none
    products += static_cast<double>(kWindow.size * kWindow.size) *
                static_cast<double>(images[i].size()) * static_cast<double>(spec.layers[i]);
  }
  return products + static_cast<double>(images.back().channels) * static_cast<double>(spec.outputs);
}

ConvNet::ConvNet(const ConvNetSpec& spec, const Recipe& recipe, std::optional<std::uint64_t> seed)
    : spec_(spec), images_(images_between(spec)), compute_(recipe.compute) {
  for (const ParameterSpec& parameter : plan_conv(spec, recipe)) parameters_.add(parameter, seed);
  for (const std::int64_t layer : spec.layers) {
    if (layer == ConvNetSpec::kMaxPool) continue;
    layers_.push_back(bind_layer(parameters_, layer_name(layers_.size())));
  }
  layers_.push_back(bind_layer(parameters_, kHead));
}

Var ConvNet::forward(Tape& tape, const Tensor& x, const ForwardMode& mode) {
  const ImageShape& first = spec_.image;
  check(x.cols() == first.size(), "model: x has shape ", x.shape.str(), " but images of ",
        describe(first), " have ", first.size(), " numbers");
  Var h = tape.constant({x.data, {x.rows() * first.pixels(), first.channels}});
  const auto pass_on = [&](const Var& y) {
    tape.release(h);
    h = y;
  };
  auto layer = layers_.begin();
  for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
    if (spec_.layers[i] == ConvNetSpec::kMaxPool) {
      pass_on(max_pool(tape, h, images_[i]));
      continue;
    }
    pass_on(conv2d(tape, h, images_[i], kWindow, *layer->weight, layer->scale, compute_));
    pass_on(mode.training ? batch_norm(tape, h, layer->norm, Rectify::kYes)
                          : batch_norm_inference(tape, h, layer->norm, Rectify::kYes));
    ++layer;
  }
  pass_on(average_pool(tape, h, images_.back()));
  pass_on(linear(tape, h, *layer->weight, layer->scale, compute_));
  pass_on(add_bias(tape, h, *layer->bias));
  return h;
}

}  // namespace tritgrad
