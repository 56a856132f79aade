// How near companded numbers stay on the whole, with the inputs of FlashOptim's own tests, and at
// the end of a row.
#include <bit>
#include <functional>
#include <limits>

#include "tests/support/support.h"

namespace tritgrad::test::test_companded_errors {
namespace {

// Fills element i of a matrix.
struct Content {
  const char* name;
  std::function<float(const RandomKey& key, std::uint64_t i)> number;
};

const Content kContents[] = {
    {"zeros", [](const RandomKey&, std::uint64_t) { return 0.0f; }},
    {"max", [](const RandomKey&, std::uint64_t) { return std::numeric_limits<float>::max(); }},
    {"random", random_normal},
    {"small", [](const RandomKey& key, std::uint64_t i) { return 0.01f * random_uniform(key, i); }},
    // Neighbours of sizes from 1e-3 to 1e3.
    {"mixed", [](const RandomKey& key, std::uint64_t i) {
       return random_normal(key, i) * std::pow(10.0f, static_cast<float>(i * 5 % 7) - 3.0f);
     }}};

struct Errors {
  double cosine = 1.0;  // of zeros: 1
  double mean = 0.0;    // of the largest
  bool zeros_stay = true;
};

Errors errors_of(FormatKind kind, const Shape& shape, const std::vector<float>& in) {
  Storage storage(spec_of(kind), shape, Category::kMoments);
  encode_all(storage, in);
  const std::vector<double> out = decoded(storage);
  double largest = 0.0, sum = 0.0, ab = 0.0, aa = 0.0, bb = 0.0;
  Errors errors;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double x = static_cast<double>(in[i]);
    largest = std::max(largest, std::abs(x));
    sum += std::abs(out[i] - x);
    ab += x * out[i];
    aa += x * x;
    bb += out[i] * out[i];
    errors.zeros_stay &= x != 0.0 || out[i] == 0.0;
  }
  if (largest == 0.0) return errors;
  errors.cosine = ab / std::sqrt(aa * bb);
  errors.mean = sum / static_cast<double>(in.size()) / largest;
  return errors;
}

}  // namespace

TEST_CASE("companded errors: zeros stay, directions and sizes stay near, for ten seeds") {
  for (const FormatKind kind : {FormatKind::kCompanded8, FormatKind::kRoot8}) {
    for (const Content& content : kContents) {
      for (const Shape& shape : {Shape{1, 5}, Shape{1, 16}, Shape{1, 17}, Shape{3, 33},
                                 Shape{32, 32}, Shape{100, 40}, Shape{1024, 16}}) {
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
          CAPTURE(std::string(format_name(kind)));
          CAPTURE(std::string(content.name));
          CAPTURE(shape.str());
          CAPTURE(seed);
          std::vector<float> in(static_cast<std::size_t>(shape.size()));
          for (std::size_t i = 0; i < in.size(); ++i) {
            in[i] = content.number({seed, 1, 0}, i);
            if (kind == FormatKind::kRoot8) in[i] = std::abs(in[i]);
          }
          const Errors errors = errors_of(kind, shape, in);
          CHECK(errors.zeros_stay);
          // FlashOptim's tests ask for 0.9999 and 1.6 / 255. All of this is the same on every
          // machine, measured: 1 - 1.5e-5 and 0.74 / 255. Numbers that lie anyhow are off by a
          // quarter of their code in the mean, and the widest is 1 / 63.75 of the largest, at the
          // top: 1 / 255.
          CHECK(errors.cosine > 1.0 - 3e-5);
          CHECK(errors.mean <= 1.0 / 255.0);
        }
      }
    }
  }
}

TEST_CASE("companded errors: the last, short group of a row is as good as the others") {
  for (FormatKind kind : {FormatKind::kCompanded8, FormatKind::kRoot8}) {
    for (std::int64_t n : {33, 65, 100, 999, 1000, 1025, 2000, 4097}) {
      CAPTURE(std::string(format_name(kind)));
      CAPTURE(n);
      std::vector<float> row = numbers(n, 60);
      if (kind == FormatKind::kRoot8) {
        for (float& x : row) x *= x;
      }
      Storage storage(spec_of(kind), {n}, Category::kMoments);
      encode_all(storage, row);
      const std::vector<double> out = decoded(storage);
      const std::size_t tail = (row.size() - 1) / 32 * 32;
      double error = 0.0, largest = 0.0;
      for (std::size_t i = tail; i < row.size(); ++i) {
        const double x = static_cast<double>(row[i]);
        error = std::max(error, std::abs(out[i] - x));
        largest = std::max(largest, std::abs(x));
      }
      // Half a code where they are widest, at the top, of a scale that is rounded by 2^-9; the few
      // roundings of floats are far below the rest.
      const double half_code = kind == FormatKind::kCompanded8
                                   ? 1.0 - 126.5 / 127.5
                                   : 1.0 - 254.5 * 254.5 / (255.0 * 255.0);
      CHECK(error <= largest * (1.0 + 0x1p-9) * half_code * (1.0 + 1e-4));
      const auto* scales = reinterpret_cast<const std::uint16_t*>(storage.planes()[1].bytes.data());
      const double scale = static_cast<double>(
          std::bit_cast<float>(static_cast<std::uint32_t>(scales[tail / 32]) << 15));
      // Nine significant bits: at most 2^-9, 0.2 %. (Published, with fp16 scales: 0.3 %.)
      CHECK(std::abs(scale - largest) <= largest * 0x1p-9);
    }
  }
}

}  // namespace tritgrad::test::test_companded_errors
