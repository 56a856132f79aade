// Planes that a checkpoint has otherwise than they are wanted.
#include <doctest/doctest.h>

#include <span>
#include <string>

#include "engine/files/checkpoint.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_checkpoint {
namespace {

using Bytes = std::vector<std::byte>;

std::string refused(Dtype dtype, const Shape& shape) {
  const TempDir folder;
  const std::string path = folder / "m.safetensors";
  Bytes bytes(128);
  save_checkpoint(path, {}, {{"w/m/scale", Dtype::kBf16, {64}, bytes}});
  Bytes wanted(static_cast<std::size_t>(shape.size()) * dtype_bytes(dtype));
  const SafetensorsFile file = open_checkpoint(path);
  const std::string message = refusal([&] {
    load_checkpoint(file, {{"w/m/scale", dtype, shape, wanted}});
  });
  const std::string begin = "checkpoint '" + path + "': tensor 'w/m/scale' is BF16 [64], expected ";
  return message.starts_with(begin) ? message.substr(begin.size()) : message;
}

// A file with the planes "a", "b" and "c" of 8 bytes each, which are 1, 2 and 3.
class SavedPlanes {
 public:
  SavedPlanes() {
    Bytes a(8, std::byte{1}), b(8, std::byte{2}), c(8, std::byte{3});
    save_checkpoint(path(), {}, {plane("a", a), plane("b", b), plane("c", c)});
  }
  std::string path() const { return folder_ / "m.safetensors"; }
  static NamedArray plane(const char* name, Bytes& bytes) {
    return {name, Dtype::kU8, {std::ssize(bytes)}, bytes};
  }

 private:
  TempDir folder_;
};

// What to do about a file that is no checkpoint, or a damaged one.
const std::string kRemedy =
    "; it is no checkpoint, or a damaged one: restore it from a copy, or name a file that --save "
    "wrote";

}  // namespace

TEST_CASE("checkpoint: damage, and files of other kinds, are refused with what to do") {
  const SavedPlanes saved;
  const std::string path = saved.path(), bytes = read_text(path);
  const auto said = [&](const std::string& changed) {
    write_text(path, changed);
    const std::string opened = refusal([&] { open_checkpoint(path); });
    CHECK(refusal([&] { parse_checkpoint(std::as_bytes(std::span(changed)), path); }) == opened);
    return opened;
  };
  std::string flipped = bytes, name = bytes;
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  name[name.find("shape")] = '(';
  for (const std::string& wrong :
       {bytes + "x", bytes.substr(0, bytes.size() - 1), flipped, name, std::string("PK\3\4 zip"),
        std::string("a,b,y\n1,2,p\n"), std::string(), bytes.substr(0, 40)}) {
    const std::string message = said(wrong);
    CAPTURE(message);
    CHECK(message.starts_with(path));
    CHECK(message.ends_with(kRemedy));
  }
  // Of a path that leads to no file, the remedy is another.
  CHECK(refusal([&] { open_checkpoint(path + "/none"); }).ends_with("; check the path"));
}

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

TEST_CASE("checkpoint: planes are copied all, or, where one is wrong, none") {
  const SavedPlanes saved;
  const SafetensorsFile file = open_checkpoint(saved.path());
  const Bytes untouched(8, std::byte{0x55});
  Bytes a = untouched, b = untouched, c = untouched, d = untouched, wide(9, std::byte{0x55});
  const NamedArray to_a = SavedPlanes::plane("a", a), to_b = SavedPlanes::plane("b", b);
  const NamedArray to_c = SavedPlanes::plane("c", c), to_d = SavedPlanes::plane("d", d);
  const auto check_refused = [&](const std::vector<NamedArray>& planes, const std::string& what) {
    CHECK(refusal([&] { load_checkpoint(file, planes); }) ==
          "checkpoint '" + saved.path() + "'" + what + "; it belongs to another model or recipe");
    for (const Bytes* bytes : {&a, &b, &c, &d}) CHECK(*bytes == untouched);
    CHECK(wide == Bytes(9, std::byte{0x55}));
  };
  check_refused({to_a, to_b, to_c, to_d}, " has no tensor 'd'");
  check_refused({to_a, to_b}, " has a tensor 'c' that is not expected");
  check_refused({to_a, to_b, SavedPlanes::plane("c", wide)},
                ": tensor 'c' is U8 [8], expected U8 [9]");
  // For those who need a part only what they name must be there; of that, too, all or none.
  CHECK(refusal([&] {
          load_planes(file, {to_a, to_d});
        }) == "checkpoint '" + saved.path() +
                  "' has no tensor 'd'; it belongs to another model or recipe");
  CHECK(a == untouched);
  load_planes(file, {to_b});
  CHECK(a == untouched);
  CHECK(b == Bytes(8, std::byte{2}));
  load_checkpoint(file, {to_c, to_b, to_a});
  CHECK(a == Bytes(8, std::byte{1}));
  CHECK(c == Bytes(8, std::byte{3}));
}

TEST_CASE("checkpoint: a file without hashes cannot be verified and is refused") {
  const TempDir folder;
  // As other programs write safetensors: the length of the header, the header, the bytes.
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  const std::string path =
      folder.write("m.safetensors", std::string(1, static_cast<char>(header.size())) +
                                        std::string(7, '\0') + header + "x");
  CHECK(SafetensorsFile::open(path).find("a") != nullptr);
  CHECK(refusal([&] { open_checkpoint(path); }) ==
        "checkpoint '" + path +
            "' carries no hashes, so it was not written by tritgrad and cannot be verified" +
            kRemedy);
}

}  // namespace tritgrad::test::test_checkpoint
