// Exports to NumPy and PyTorch, read back by our own readers of both formats.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/data/npy.h"
#include "engine/files/checkpoint.h"
#include "engine/files/safetensors.h"
#include "engine/files/zip.h"
#include "models/export/npz.h"
#include "models/export/pytorch_safetensors.h"
#include "tests/support/random_network.h"
#include "tests/support/support.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_array_exports {
namespace {

const ExportHead kHead{"m", {"A test of m\xC3\xBC.", export_signature()}};

InferenceNetwork random_network(const std::string& spec, const std::string& recipe,
                                const std::vector<std::string>& overrides,
                                const ImageShape& image = {}) {
  const std::int64_t inputs = image.size() > 0 ? image.size() : 37;
  return network_of(random_model({spec, {inputs, image}, 3, load_recipe(recipe, overrides)}, 7),
                    {"a", "\xC3\xA9t\xC3\xA9", "\xF0\x9F\x98\x80 c"});
}

// An archive whose arrays outlive the views of them.
class Arrays {
 public:
  explicit Arrays(const std::string& bytes) : archive_(bytes, "m.npz") {
    for (const std::string& name : archive_.names()) entries_[name] = archive_.read(name);
  }
  bool has(const std::string& name) const { return entries_.contains(name + ".npy"); }
  NpyArray at(const std::string& name) const {
    CAPTURE(name);
    REQUIRE(has(name));
    return parse_npy(entries_.at(name + ".npy"), name);
  }
  std::string text(const std::string& name, std::int64_t i = 0) const {
    return at(name).text(i).value_or("no text");
  }
  // Empty: no such array. All types here are exact in double.
  template <typename Number>
  void check_equal(const std::string& name, const std::vector<std::int64_t>& extents,
                   const std::vector<Number>& expected) const {
    if (expected.empty()) {
      CHECK(!has(name));
      return;
    }
    CAPTURE(name);
    const NpyArray array = at(name);
    CHECK(array.extents == extents);
    REQUIRE(array.size() == std::ssize(expected));
    std::int64_t differing = 0;
    for (std::int64_t i = 0; i < array.size(); ++i) {
      const auto number = static_cast<double>(expected[static_cast<std::size_t>(i)]);
      differing += array.number(i) == number ? 0 : 1;
    }
    CHECK(differing == 0);
  }

 private:
  ZipArchive archive_;
  std::map<std::string, std::string> entries_;
};

// Trit i of a row is digit i % 5 of its byte i / 5, less 1.
void check_packed(const Arrays& arrays, const InferenceProduct& w) {
  const NpyArray packed = arrays.at(w.name + ".packed");
  const std::int64_t row_bytes = (w.inputs + 4) / 5;
  CHECK(packed.extents == std::vector<std::int64_t>{w.outputs, row_bytes});
  const int powers[] = {1, 3, 9, 27, 81};
  std::int64_t differing = 0;
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    for (std::int64_t i = 0; i < w.inputs; ++i) {
      const int byte = static_cast<int>(packed.number(o * row_bytes + i / 5));
      const int trit = byte / powers[i % 5] % 3 - 1;
      differing += trit == w.trits[static_cast<std::size_t>(o * w.inputs + i)] ? 0 : 1;
    }
  }
  CHECK(differing == 0);
}

std::vector<float> products_of(const InferenceProduct& w) {
  std::vector<float> all;
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    for (std::int64_t i = 0; i < w.inputs; ++i) {
      const auto at = static_cast<std::size_t>(o * w.inputs + i);
      all.push_back(w.trits.empty()
                        ? w.weights[at]
                        : static_cast<float>(w.trits[at]) *
                              w.scales[static_cast<std::size_t>(o * w.groups() + i / w.group)]);
    }
  }
  return all;
}

void check_layer(const Arrays& arrays, const InferenceLayer& layer) {
  const InferenceProduct& w = layer.product;
  const bool is_image = layer.kind == InferenceLayer::Kind::kConvolution;
  const std::vector<std::int64_t> extents =
      is_image ? std::vector<std::int64_t>{w.outputs, 3, 3, layer.image.channels}
               : std::vector<std::int64_t>{w.outputs, w.inputs};
  arrays.check_equal(w.name + ".weight", extents, products_of(w));
  arrays.check_equal(w.name + ".trits", extents, w.trits);
  arrays.check_equal(w.name + ".scales", {w.outputs, w.groups()}, w.scales);
  CHECK(arrays.at(w.name + ".rounds_inputs").number(0) == (w.in_integers ? 1.0 : 0.0));
  if (!w.trits.empty()) {
    check_packed(arrays, w);
    const auto group = static_cast<std::int64_t>(arrays.at(w.name + ".group").number(0));
    CHECK((w.inputs + group - 1) / group == w.groups());
  }
  const std::vector<std::int64_t> width{w.outputs};
  arrays.check_equal(w.name + ".mean", width, layer.mean);
  arrays.check_equal(w.name + ".inverse_std", width, layer.inverse_std);
  arrays.check_equal(w.name + ".gain", width, layer.gain);
  arrays.check_equal(w.name + ".bias", width, layer.bias);
  CHECK(kNorms.parse(arrays.text(w.name + ".norm")) == layer.norm);
  const std::string activation = arrays.text(w.name + ".activation");
  CHECK((activation == "none" ? std::nullopt : std::optional(kActivations.parse(activation))) ==
        layer.activation);
}

std::vector<float> floats_of(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor& tensor = file.tensor(name);
  CHECK(tensor.dtype == Dtype::kF32);
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

}  // namespace

TEST_CASE("npz: every array is what the network holds, of all norms, groups, and recipes") {
  const InferenceNetwork networks[] = {
      random_network("mlp:70,9", "latent8", {}),
      random_network("mlp:70,9:norm=layer:activation=tanh", "votes", {"weight.group=32"}),
      random_network("mlp:40:norm=rms:activation=squared_relu", "shared4", {"weight.group=64"}),
      random_network("mlp:12:norm=none", "fp32", {}),
      random_network("mlp:12", "master", {}),
      random_network("mlp:", "trits", {}),
      random_network("conv:5,M,7", "latent8", {}, {6, 5, 2}),
      random_network("conv:M,6", "fp32", {}, {4, 6, 3}),
      random_network("conv:5,R,7/2,F9,F8", "latent8", {}, {6, 5, 2})};
  for (const InferenceNetwork& network : networks) {
    const std::string bytes = npz(network, kHead, {});
    CHECK(bytes == npz(network, kHead, {TritPacking::kTwoBits}));
    CHECK(is_export(bytes));
    CHECK(bytes.ends_with(export_signature()));
    const Arrays arrays(bytes);
    const std::vector<std::int64_t> inputs{network.inputs};
    arrays.check_equal("input.mean", inputs, network.means);
    arrays.check_equal("input.inverse_std", inputs, network.inverse_stds);
    arrays.check_equal("input.offset", {1}, std::vector<float>{0.0f});
    CHECK(arrays.at("input.square_roots").number(0) == 0.0);
    CHECK(arrays.text("format") == "tritgrad.npz 1");
    CHECK(arrays.text("provenance") == kHead.provenance[0]);
    for (std::size_t i = 0; i < network.class_names.size(); ++i) {
      CHECK(arrays.text("class_names", static_cast<std::int64_t>(i)) == network.class_names[i]);
    }
    std::int64_t number = 0;
    for (const InferenceLayer& layer : network.layers) {
      const std::string name = arrays.text("layers", number++);
      if (!layer.has_product()) {
        const bool is_max = layer.kind == InferenceLayer::Kind::kMaxPool;
        CHECK(name == (is_max ? "max_pool" : "average_pool"));
        continue;
      }
      CHECK(name == layer.product.name);
      check_layer(arrays, layer);
    }
    CHECK(arrays.at("layers").size() == number);
    CHECK(arrays.has("input.image") == (network.layers[0].image.size() > 0));
  }
  const Arrays image(npz(networks[6], kHead, {}));
  image.check_equal("input.image", {3}, std::vector<float>{6, 5, 2});
  CHECK(!image.has("layers.0.stride"));
  const Arrays block(npz(networks[8], kHead, {}));
  CHECK(block.text("layers.2.adds_input_of") == "layers.1");
  CHECK(!block.has("layers.1.adds_input_of"));
  CHECK(block.at("layers.3.stride").number(0) == 2.0);
  block.check_equal("layers.4.bias", {9}, networks[8].layers[4].bias);
}

TEST_CASE("npz: offsets in double, and the bytes that are counted") {
  InferenceNetwork network = random_network("mlp:8", "latent8", {"weight.group=32"});
  network.offsets.assign(37, 17000000001.5);
  network.square_roots = true;
  const Arrays arrays(npz(network, kHead, {}));
  arrays.check_equal("input.offset", {37}, network.offsets);
  CHECK(arrays.at("input.square_roots").number(0) == 1.0);
  const ExportBytes bytes = npz_bytes(network, {});
  CHECK(bytes.weights == 5 * (8 * 37 + 3 * 8) + 8 * 8 + 3 * 2);
  CHECK(bytes.scales == 4 * (8 * 2 + 3));
  CHECK(bytes.others == 4 * (4 * 8 + 3) + 8 * 3 * 37);
  CHECK(bytes.workspace == 0);
}

TEST_CASE("npz, safetensors: what fills a missing number, if there is such a thing") {
  InferenceNetwork network = random_network("mlp:8", "latent8", {});
  CHECK(!Arrays(npz(network, kHead, {})).has("input.fill"));
  const ExportBytes without = npz_bytes(network, {});
  for (int i = 0; i < 37; ++i) network.fills.push_back(17000000001.5 + i);
  Arrays(npz(network, kHead, {})).check_equal("input.fill", {37}, network.fills);
  CHECK(npz_bytes(network, {}).others == without.others + 8 * 37);
  const std::string bytes = pytorch_safetensors(network, kHead, {});
  const auto file = SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "m");
  CHECK(nlohmann::json::parse(file.metadata().at("input.fill")) == network.fills);
}

TEST_CASE("npz, safetensors: names that are no text, and cells that become means, are refused") {
  InferenceNetwork network = random_network("mlp:8", "latent8", {});
  check_npz(network, kHead);
  check_pytorch_safetensors(network, kHead);
  network.inverse_stds[3] = 1e-25f;
  CHECK(contains(refusal([&] { check_pytorch_safetensors(network, kHead); }),
                 "standard deviation of 1e+25, whose square fp32 cannot hold"));
  network.inverse_stds[3] = 1.0f;
  network.table = TableSchema{};
  network.table->columns.resize(1);
  network.table->columns[0].name = "age";
  network.table->columns[0].has_indicator = true;
  CHECK(contains(refusal([&] { check_npz(network, kHead); }),
                 "column 'age' has missing cells that become the mean of the training rows, which "
                 ".npz cannot express; .h, .onnx, .js and .html do"));
  CHECK(contains(refusal([&] { check_pytorch_safetensors(network, kHead); }),
                 "column 'age' has missing cells that become the mean"));
  network.table->columns[0].has_indicator = false;
  network.table->columns[0].fill_number = 40.0;
  check_npz(network, kHead);
  check_pytorch_safetensors(network, kHead);
  network.table.reset();
  network.class_names[1] = "\xFF";
  CHECK(contains(refusal([&] { check_npz(network, kHead); }), "is not UTF-8"));
  CHECK(contains(refusal([&] { check_pytorch_safetensors(network, kHead); }), "is not UTF-8"));
}

TEST_CASE("safetensors: modules of PyTorch with their tensors, of a perceptron") {
  InferenceNetwork network = random_network("mlp:11,5", "latent8", {"weight.group=32"});
  const std::string bytes = pytorch_safetensors(network, kHead, {});
  CHECK(is_export(bytes));
  const auto file = SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "m");
  const Metadata& about = file.metadata();
  CHECK(about.at("format") == "pt");
  CHECK(about.at("network") ==
        "nn.Sequential(nn.BatchNorm1d(37, eps=0.0, affine=False), "
        "nn.Linear(37, 11, bias=False), nn.BatchNorm1d(11), nn.ReLU(), "
        "nn.Linear(11, 5, bias=False), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))");
  CHECK(about.at("rounds_inputs") == "[1,4,7]");
  CHECK(nlohmann::json::parse(about.at("class_names")) == network.class_names);
  CHECK(about.at("provenance") == kHead.provenance[0] + "\n" + kHead.provenance[1]);
  CHECK(floats_of(file, "1.weight") == products_of(network.layers[0].product));
  CHECK(file.tensor("1.weight").shape == std::vector<std::uint64_t>{11, 37});
  CHECK(floats_of(file, "2.weight") == network.layers[0].gain);
  CHECK(floats_of(file, "2.bias") == network.layers[0].bias);
  CHECK(floats_of(file, "2.running_mean") == network.layers[0].mean);
  CHECK(floats_of(file, "7.bias") == network.layers[2].bias);
  CHECK(floats_of(file, "0.running_mean") == network.means);
  CHECK(file.tensor("2.num_batches_tracked").dtype == Dtype::kI64);
  CHECK(file.tensor("2.num_batches_tracked").shape.empty());
  CHECK(file.tensors().size() == 3 + 1 + 5 + 1 + 5 + 2);
  // running_var is rounded by 2^-24 of itself, which is 2^-25 of the inverse root.
  const auto check_inverse = [&](const std::string& name, double eps,
                                 const std::vector<float>& expected) {
    const std::vector<float> variances = floats_of(file, name);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto inverse = static_cast<double>(expected[i]);
      const double found = 1.0 / std::sqrt(static_cast<double>(variances[i]) + eps);
      CHECK(std::abs(found / inverse - 1.0) <= 0x1p-25 * 1.001);
    }
  };
  check_inverse("0.running_var", 0.0, network.inverse_stds);
  check_inverse("2.running_var", 1e-5, network.layers[0].inverse_std);
  const ExportBytes counted = pytorch_safetensors_bytes(network, {});
  CHECK(counted.weights == 4 * (37 * 11 + 11 * 5 + 5 * 3));
  std::size_t stored = 0;
  for (const StoredTensor& tensor : file.tensors()) stored += tensor.bytes.size();
  CHECK(counted.tables() == static_cast<std::int64_t>(stored));
}

TEST_CASE("safetensors: convolutions with the channel before the pixel, other norms, offsets") {
  const InferenceNetwork conv = random_network("conv:5,M", "votes", {}, {6, 5, 2});
  const std::string bytes = pytorch_safetensors(conv, kHead, {});
  const auto file = SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "m");
  CHECK(file.metadata().at("network") ==
        "nn.Sequential(nn.BatchNorm1d(60, eps=0.0, affine=False), nn.Unflatten(1, (2, 6, 5)), "
        "nn.Conv2d(2, 5, 3, padding=1, bias=False), nn.BatchNorm2d(5), nn.ReLU(), "
        "nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 3))");
  CHECK(file.metadata().at("rounds_inputs") == "[2,8]");
  CHECK(file.tensor("2.weight").shape == std::vector<std::uint64_t>{5, 2, 3, 3});
  const std::vector<float> ours = products_of(conv.layers[0].product);
  const std::vector<float> theirs = floats_of(file, "2.weight");
  const std::vector<float> means = floats_of(file, "0.running_mean");
  for (std::size_t o = 0; o < 5; ++o) {
    for (std::size_t c = 0; c < 2; ++c) {
      for (std::size_t at = 0; at < 9; ++at) {
        CHECK(theirs[(o * 2 + c) * 9 + at] == ours[(o * 9 + at) * 2 + c]);
      }
    }
  }
  for (std::size_t at = 0; at < 60; ++at) {
    CHECK(means[at % 2 * 30 + at / 2] == conv.means[at]);
  }
  CHECK(file.metadata().at("network").find("Residual") == std::string::npos);
  InferenceNetwork other = random_network("mlp:7,6:norm=rms:activation=squared_relu", "fp32", {});
  other.offsets.assign(37, 0.1);
  other.square_roots = true;
  other.layers[1].norm = Norm::kLayer;
  other.layers[1].bias = other.layers[1].gain;
  const std::string others = pytorch_safetensors(other, kHead, {});
  const auto second = SafetensorsFile::parse(std::as_bytes(std::span(others)), "m");
  CHECK(second.metadata().at("network").ends_with(
      "nn.Linear(37, 7, bias=False), nn.RMSNorm(7, eps=1e-6), SquaredReLU(), "
      "nn.Linear(7, 6, bias=False), nn.LayerNorm(6), SquaredReLU(), nn.Linear(6, 3))"));
  CHECK(second.metadata().at("rounds_inputs") == "[]");
  CHECK(second.metadata().at("input.square_roots") == "true");
  CHECK(nlohmann::json::parse(second.metadata().at("input.offset")) == other.offsets);
  CHECK(second.find("2.bias") == nullptr);
}

TEST_CASE("safetensors: residual blocks, strides, and dense layers of channels before pixels") {
  const InferenceNetwork conv = random_network("conv:5,R,4/2,F7", "votes", {}, {6, 5, 2});
  const std::string bytes = pytorch_safetensors(conv, kHead, {});
  const auto file = SafetensorsFile::parse(std::as_bytes(std::span(bytes)), "m");
  CHECK(file.metadata().at("network") ==
        "nn.Sequential(nn.BatchNorm1d(60, eps=0.0, affine=False), nn.Unflatten(1, (2, 6, 5)), "
        "nn.Conv2d(2, 5, 3, padding=1, bias=False), nn.BatchNorm2d(5), nn.ReLU(), "
        "Residual(nn.Conv2d(5, 5, 3, padding=1, bias=False), nn.BatchNorm2d(5), nn.ReLU(), "
        "nn.Conv2d(5, 5, 3, padding=1, bias=False), nn.BatchNorm2d(5)), nn.ReLU(), "
        "nn.Conv2d(5, 4, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), "
        "nn.Flatten(), nn.Linear(36, 7, bias=False), nn.BatchNorm1d(7), nn.ReLU(), "
        "nn.Linear(7, 3))");
  CHECK(file.metadata().at("rounds_inputs") == R"([2,"5.0","5.3",7,11,14])");
  CHECK(file.tensor("5.3.weight").shape == std::vector<std::uint64_t>{5, 5, 3, 3});
  CHECK(floats_of(file, "5.4.running_mean") == conv.layers[2].mean);
  // 3 x 3 pixels of 4 channels.
  const std::vector<float> ours = products_of(conv.layers[4].product);
  const std::vector<float> theirs = floats_of(file, "11.weight");
  for (std::size_t o = 0; o < 7; ++o) {
    for (std::size_t at = 0; at < 36; ++at) {
      CHECK(theirs[o * 36 + at % 4 * 9 + at / 4] == ours[o * 36 + at]);
    }
  }
  const ExportBytes counted = pytorch_safetensors_bytes(conv, {});
  std::size_t stored = 0;
  for (const StoredTensor& tensor : file.tensors()) stored += tensor.bytes.size();
  CHECK(counted.tables() == static_cast<std::int64_t>(stored));
}

TEST_CASE("safetensors: an export is no checkpoint, although its hashes hold") {
  const TempDir folder;
  const std::string path = folder.write(
      "m.safetensors", pytorch_safetensors(random_network("mlp:", "fp32", {}), kHead, {}));
  CHECK(SafetensorsFile::open(path).has_hashes());
  CHECK(contains(refusal([&] { open_checkpoint(path); }),
                 "this is an export, which other programs read, and no checkpoint"));
}

}  // namespace tritgrad::test::test_array_exports
