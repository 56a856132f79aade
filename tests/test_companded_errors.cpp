// How near companded numbers stay on the whole: the inputs and bounds of FlashOptim's own tests.
#include <functional>
#include <limits>

#include "tests/support.h"

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
          CHECK(errors.cosine > 0.9999);
          CHECK(errors.mean <= 1.6 / 255.0);
        }
      }
    }
  }
}

}  // namespace tritgrad::test::test_companded_errors
