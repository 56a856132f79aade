// Planes that a checkpoint has otherwise than they are wanted.
#include <doctest/doctest.h>

#include "engine/checkpoint.h"
#include "tests/support_files.h"

namespace tritgrad::test::test_checkpoint {
namespace {

std::string refused(Dtype dtype, const Shape& shape) {
  const TempDir folder;
  const std::string path = folder / "m.safetensors";
  std::vector<std::byte> bytes(128);
  save_checkpoint(path, {}, {{"w/m/scale", Dtype::kBf16, {64}, bytes}});
  std::vector<std::byte> wanted(static_cast<std::size_t>(shape.size()) * dtype_bytes(dtype));
  const SafetensorsFile file = open_checkpoint(path);
  const std::string message = refusal([&] {
    load_checkpoint(file, {{"w/m/scale", dtype, shape, wanted}});
  });
  const std::string begin = "checkpoint '" + path + "': tensor 'w/m/scale' is BF16 [64], expected ";
  return message.starts_with(begin) ? message.substr(begin.size()) : message;
}

}  // namespace

TEST_CASE("checkpoint: a tensor of another type or shape is refused with both") {
  const std::string version =
      "; another version of tritgrad may have written the file, use that one or train anew";
  CHECK(refused(Dtype::kBf16, {64}).empty());
  CHECK(refused(Dtype::kU16, {64}) == "U16 [64]" + version);
  CHECK(refused(Dtype::kF32, {64}) == "F32 [64]" + version);
  const std::string model = "; it belongs to another model or recipe";
  CHECK(refused(Dtype::kBf16, {32}) == "BF16 [32]" + model);
  CHECK(refused(Dtype::kBf16, {8, 8}) == "BF16 [8 x 8]" + model);
  CHECK(refused(Dtype::kU8, {128}) == "U8 [128]" + model);
}

}  // namespace tritgrad::test::test_checkpoint
