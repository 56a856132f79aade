// What the table of targets says of each.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "engine/check.h"
#include "models/export/export_target.h"
#include "tests/support/random_network.h"

namespace tritgrad::test::test_export_target {
namespace {

// The endings of the targets that promise the bits of the model, with a blank between them.
std::string exact_targets(const std::string& spec, const std::string& recipe,
                          const std::vector<std::string>& overrides = {}) {
  const ModelInput input{60, spec.starts_with("conv:") ? ImageShape{5, 6, 2} : ImageShape{}};
  const InferenceNetwork network =
      network_of(random_model({spec, input, 2, load_recipe(recipe, overrides)}, 1), {"a", "b"});
  std::string endings;
  for (const ExportTarget& target : export_targets()) {
    if (target.takes(false) && target.network.is_exact(network))
      endings += (endings.empty() ? "" : " ") + std::string(target.ending);
  }
  return endings;
}

}  // namespace

TEST_CASE("export targets: which of them compute the bits of a model") {
  const std::string all = ".h .onnx .js .html .npz", all_but_onnx = ".h .js .html .npz";
  CHECK(exact_targets("mlp:70", "latent8") == all);
  CHECK(exact_targets("mlp:40,30:norm=layer:activation=squared_relu", "votes") == all);
  CHECK(exact_targets("conv:6,M,8", "latent8") == all);
  CHECK(exact_targets("conv:6,R,8/2,F9", "latent8") == all);
  // A tanh of the runtime's own; several scales a row.
  CHECK(exact_targets("mlp:70:activation=tanh", "latent8") == all_but_onnx);
  CHECK(exact_targets("mlp:70", "latent8", {"weight.group=32"}) == all_but_onnx);
  CHECK(exact_targets("conv:6,M,8", "latent8", {"weight.group=32"}) == all_but_onnx);
  // Sums in floats.
  CHECK(exact_targets("mlp:8", "fp32").empty());
  CHECK(exact_targets("mlp:8", "latent8", {"compute=\"fp32\""}).empty());
}

TEST_CASE("export targets: what does not take a model names those that do") {
  const ExportTarget& gguf = export_target_of("lm.gguf");
  const ExportTarget& header = export_target_of("m.h");
  CHECK_NOTHROW(check_takes(gguf, true, "--to"));
  CHECK_NOTHROW(check_takes(header, false, "--to"));
  CHECK_THROWS_WITH_AS(check_takes(gguf, false, "--to"),
                       "--to: .gguf is for language models, and this model reads rows of features; "
                       "name an ending of .h, .onnx, .js, .html, .npz, .safetensors",
                       Error);
  CHECK_THROWS_WITH_AS(check_takes(header, true, "--export"),
                       "--export: .h is for networks that read rows of features, and this is a "
                       "language model; name an ending of .gguf",
                       Error);
}

}  // namespace tritgrad::test::test_export_target
