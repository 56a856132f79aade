#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <vector>

#include "engine/data/augmentation.h"
#include "engine/data/loader.h"
#include "engine/data/open_dataset.h"
#include "engine/memory/parallel.h"
#include "models/training/train.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_augmentation {
namespace {

constexpr RandomKey kKey{7, 1, 2};

// Pixel values 1, 2, 3, ...: none is the 0 that comes in.
std::vector<float> numbered(const ImageShape& shape) {
  std::vector<float> image(static_cast<std::size_t>(shape.size()));
  std::iota(image.begin(), image.end(), 1.0f);
  return image;
}

std::vector<float> moved(const std::vector<float>& image, const ImageShape& s, std::int64_t down,
                         std::int64_t right, bool flip) {
  std::vector<float> out(image.size());
  for (std::int64_t y = 0; y < s.height; ++y) {
    for (std::int64_t x = 0; x < s.width; ++x) {
      const std::int64_t from_y = y - down;
      const std::int64_t shifted = x - right;
      if (from_y < 0 || from_y >= s.height || shifted < 0 || shifted >= s.width) continue;
      const std::int64_t from_x = flip ? s.width - 1 - shifted : shifted;
      for (std::int64_t c = 0; c < s.channels; ++c) {
        out[static_cast<std::size_t>((y * s.width + x) * s.channels + c)] =
            image[static_cast<std::size_t>((from_y * s.width + from_x) * s.channels + c)];
      }
    }
  }
  return out;
}

std::string refused(const std::string& text) {
  return refusal([&] { parse_augmentation(text); });
}

TEST_CASE("augmentation: reads shift and flip, refuses the rest by name") {
  CHECK(parse_augmentation("") == Augmentation{});
  CHECK(parse_augmentation("flip") == Augmentation{0, true});
  CHECK(parse_augmentation("shift=3") == Augmentation{3, false});
  CHECK(parse_augmentation("flip,shift=12") == Augmentation{12, true});
  for (const char* text : {"", "flip", "shift=3", "shift=12,flip"}) {
    CHECK(to_text(parse_augmentation(text)) == text);
  }
  CHECK(parse_augmentation("none") == Augmentation{});
  CHECK(to_text(parse_augmentation("flip,shift=12")) == "shift=12,flip");
  CHECK(contains(refused("rotate"),
                 "'rotate' found, crop=PIXELS (or shift=PIXELS, which is the same), flip or none "
                 "expected"));
  CHECK(contains(refused("shift=0"), "whole number of pixels in 1..32768"));
  CHECK(contains(refused("shift=2x"), "'shift=2x' found"));
  CHECK(contains(refused("shift=-1"), "'shift=-1' found"));
  CHECK(contains(refused("shift=99999999999999999999"), "1..32768"));
  CHECK(contains(refused("flip,,shift=1"), "'' found"));
  CHECK(contains(refused("flip,"), "'' found"));
  CHECK(contains(refused(","), "'' found"));
  CHECK(contains(refused("flip,flip"), "named twice"));
  CHECK(contains(refused("shift=1,shift=2"), "named twice"));
  CHECK(contains(refused("crop=1,shift=2"), "named twice"));
  CHECK(contains(refused("crop=0"), "in 1..32768 expected behind crop="));
  CHECK(parse_augmentation("crop=4,flip") == parse_augmentation("shift=4,flip"));
  CHECK(to_text(parse_augmentation("crop=4")) == "shift=4");
}

TEST_CASE("augmentation: an image becomes one of its shifted and flipped selves, each as often") {
  for (const ImageShape& shape : {ImageShape{3, 4, 1}, {4, 3, 3}, {5, 5, 2}, {3, 3, 1}}) {
    for (const Augmentation& augmentation :
         {Augmentation{0, true}, Augmentation{1, false}, Augmentation{2, true}}) {
      std::map<std::vector<float>, int> expected, seen;
      const std::vector<float> image = numbered(shape);
      const std::int64_t s = augmentation.shift;
      for (std::int64_t down = -s; down <= s; ++down) {
        for (std::int64_t right = -s; right <= s; ++right) {
          expected[moved(image, shape, down, right, false)] = 0;
          if (augmentation.flip) expected[moved(image, shape, down, right, true)] = 0;
        }
      }
      constexpr int kDraws = 5000;
      for (std::uint64_t index = 0; index < kDraws; ++index) {
        std::vector<float> changed = image;
        augment(changed.data(), shape, augmentation, kKey, index);
        REQUIRE(expected.contains(changed));
        ++seen[changed];
      }
      // Each of k outcomes has probability 1/k: 5 deviations of a binomial count. (With chance, one
      // of these 120 counts would fail once in 14,000 keys; the key is fixed.)
      const double p = 1.0 / static_cast<double>(expected.size());
      const double deviation = std::sqrt(kDraws * p * (1.0 - p));
      CHECK(seen.size() == expected.size());
      for (const auto& [result, count] : seen) {
        CHECK(std::abs(count - kDraws * p) <= 5.0 * deviation);
      }
    }
  }
}

TEST_CASE("augmentation: data that are no images, and shifts as large as an image, are refused") {
  const Dataset iris = open_dataset("iris"), digits = open_dataset("digits");
  CHECK_NOTHROW(check_augmentation({}, iris));
  CHECK_NOTHROW(check_augmentation({7, true}, digits));
  CHECK(contains(refusal([&] {
                   check_augmentation({1, false}, iris);
                 }),
                 "'iris' holds no images; leave it out"));
  CHECK(contains(refusal([&] {
                   check_augmentation({8, false}, digits);
                 }),
                 "a crop or shift by 8 found, less than 8 expected"));
}

std::vector<float> epoch(const Dataset& data, std::int64_t batch, std::int64_t number,
                         std::uint64_t seed = 3) {
  std::vector<std::int32_t> rows(600);
  std::iota(rows.begin(), rows.end(), 0);
  Loader loader(data, rows, Standardizer({0.0f}, {1.0f}), batch, seed, RowOrder::kAsGiven,
                {2, true});
  loader.seek({number, 0});
  std::vector<float> all;
  for (std::int64_t i = 0; i < loader.batches_per_epoch(); ++i) {
    const Batch next = loader.next();
    all.insert(all.end(), next.x.data, next.x.data + next.x.size());
  }
  return all;
}

TEST_CASE(
    "augmentation: the same for any batch size and number of threads, others by seed and epoch") {
  const Dataset digits = open_dataset("digits");
  const std::vector<float> expected = epoch(digits, 600, 0);
  for (int threads : {1, 2, 3, 7}) {
    set_thread_count(threads);
    CHECK(epoch(digits, 600, 0) == expected);
    CHECK(epoch(digits, 50, 0) == expected);
  }
  set_thread_count(0);
  CHECK(epoch(digits, 600, 1) != expected);
  CHECK(epoch(digits, 600, 0, 4) != expected);
}

TEST_CASE("augmentation: a resumed run goes on with it, and not without") {
  const Dataset digits = open_dataset("digits");
  const TempDir folder;
  TrainOptions options;
  options.model = "mlp:16";
  options.recipe = "latent8";
  options.epochs = 2;
  options.batch = 64;
  const std::string plain = train(digits, options).weights_sha256;
  options.augment = "shift=1,flip";
  const std::string whole = train(digits, options).weights_sha256;
  CHECK(whole != plain);
  TrainOptions part = options;
  part.save = (folder / "m.safetensors").string();
  part.stop_after = 30;
  train(digits, part);
  TrainOptions rest = options;
  rest.resume = part.save;
  CHECK(train(digits, rest).weights_sha256 == whole);
  rest.augment.clear();
  CHECK(contains(refusal([&] { train(digits, rest); }),
                 "it was written with another augmentation (--augment), 'shift=1,flip' and not '"));
}

}  // namespace
}  // namespace tritgrad::test::test_augmentation
