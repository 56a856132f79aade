// MicroAdam against a dense recomputation, and the codes of its error feedback.
#include <bit>
#include <deque>
#include <set>

#include "models/recipes/recipe.h"
#include "tests/support/single.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_microadam {
namespace {

double from_bf16(std::uint16_t x) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16));
}

GroupSpec micro_group(int bits, WindowForm form) {
  GroupSpec group;
  group.rule.kind = RuleKind::kMicroadam;
  group.rule.density = 0.1;
  group.rule.window = 4;
  group.rule.feedback_bits = bits;
  group.rule.bucket = 16;
  group.rule.window_form = form;
  group.lr = 0.01;
  return group;
}

// The place of a run, and of its state in the planes: cut as FORMATS.md says, by code of its own.
struct Piece {
  std::size_t first, n;           // elements
  std::size_t kept, kept_before;  // in a row of the ring
  std::size_t codes_before, buckets_before;
};

std::vector<Piece> pieces_of(const Shape& shape, const RuleSpec& spec) {
  const auto rows = static_cast<std::size_t>(shape.rows());
  const auto cols = static_cast<std::size_t>(shape.cols());
  const auto bits = static_cast<std::size_t>(spec.feedback_bits);
  const auto bucket = static_cast<std::size_t>(spec.bucket);
  std::vector<Piece> pieces;
  std::size_t kept = 0, codes = 0, buckets = 0;
  for (std::size_t first = 0; first < rows * cols;) {
    const std::size_t n = cols > 4096 ? std::min<std::size_t>(3840, cols - first % cols)
                                      : std::min(4096 / cols * cols, rows * cols - first);
    const auto share = static_cast<std::size_t>(std::ceil(spec.density * static_cast<double>(n)));
    pieces.push_back({first, n, share, kept, codes, buckets});
    first += n;
    kept += share;
    codes += (n * bits + 7) / 8;
    buckets += (n + bucket - 1) / bucket;
  }
  return pieces;
}

// One gradient of the window: places in the parameter and values.
using Row = std::vector<std::pair<std::size_t, double>>;

// Reads what the planes hold of one parameter, by decoders of its own.
struct State {
  State(Single& single, const RuleSpec& chosen)
      : spec(chosen),
        pieces(pieces_of(single.w().shape(), spec)),
        index(single.plane<std::uint16_t>("w/microadam/index")),
        value(single.plane<std::uint16_t>("w/microadam/value")),
        size(static_cast<std::size_t>(single.w().shape().size())) {
    if (spec.feedback_bits == 0) return;
    codes = single.plane<std::uint8_t>("w/microadam/error");
    bounds = single.plane<std::uint16_t>("w/microadam/bounds");
  }

  // Returns what is fed back, and, if asked for, the step of the codes at each element.
  std::vector<double> feedback(std::vector<double>* unit = nullptr) const {
    std::vector<double> error(size, 0.0);
    if (unit != nullptr) unit->assign(size, 0.0);
    if (spec.feedback_bits == 0) return error;
    const auto bits = static_cast<std::size_t>(spec.feedback_bits);
    for (const Piece& piece : pieces) {
      for (std::size_t i = 0; i < piece.n; ++i) {
        std::uint32_t code = 0;
        for (std::size_t b = 0; b < bits; ++b) {
          const std::size_t bit = i * bits + b;
          code |= static_cast<std::uint32_t>(codes[piece.codes_before + bit / 8] >> bit % 8 & 1)
                  << b;
        }
        const std::size_t bucket = piece.buckets_before + i / static_cast<std::size_t>(spec.bucket);
        const double low = from_bf16(bounds[2 * bucket]);
        const double step = (from_bf16(bounds[2 * bucket + 1]) - low) / ((1 << bits) - 1);
        error[piece.first + i] = low + step * code;
        if (unit != nullptr) (*unit)[piece.first + i] = step;
      }
    }
    return error;
  }

  // Returns what step t, the last one, has put into the window.
  Row newest(int t) const {
    const std::size_t kept = pieces.back().kept_before + pieces.back().kept;
    const std::size_t begin = static_cast<std::size_t>((t - 1) % spec.window) * kept;
    Row row;
    for (const Piece& piece : pieces) {
      for (std::size_t j = 0; j < piece.kept; ++j) {
        const std::size_t at = begin + piece.kept_before + j;
        row.emplace_back(piece.first + index[at], from_bf16(value[at]));
      }
    }
    return row;
  }

  RuleSpec spec;
  std::vector<Piece> pieces;
  std::span<std::uint16_t> index, value, bounds;
  std::span<std::uint8_t> codes;
  std::size_t size;
};

// The newest row holds, of every piece, the largest |a|, in rising order, as bf16.
void check_selection(const State& state, const Row& row, const std::vector<double>& a) {
  double wrong_value = 0.0, too_small = 0.0;
  std::size_t at = 0;
  for (const Piece& piece : state.pieces) {
    std::set<std::size_t> kept;
    double smallest = 1e9;
    for (std::size_t j = 0; j < piece.kept; ++j, ++at) {
      const auto [i, v] = row[at];
      REQUIRE((i >= piece.first && i < piece.first + piece.n));
      REQUIRE((kept.empty() || i > *kept.rbegin()));
      kept.insert(i);
      smallest = std::min(smallest, std::abs(a[i]));
      // a is summed in fp32 and rounded to bf16, 8 significant bits: 2^-8 relative, and 2^-23 of
      // the terms.
      wrong_value = std::max(wrong_value, std::abs(v - a[i]) / (std::abs(a[i]) * 0x1p-8 + 0x1p-22));
    }
    for (std::size_t i = piece.first; i < piece.first + piece.n; ++i) {
      if (!kept.contains(i)) too_small = std::max(too_small, std::abs(a[i]) - smallest);
    }
  }
  CHECK(wrong_value <= 1.0);
  CHECK(too_small <= 0x1p-22);
}

// What was not kept, and what bf16 dropped, is fed back, to one step of the codes. Which of at most
// 255 steps it is errs by three roundings of floats (the difference to the lowest, the inverse of a
// step, their product); then a few sums of numbers below 2, a rounding of 2^-24 each: four of
// those.
void check_feedback(const State& state, const Row& row, std::vector<double> a) {
  if (state.spec.feedback_bits == 0) return;
  for (const auto& [i, v] : row) a[i] -= v;
  std::vector<double> unit;
  const std::vector<double> error = state.feedback(&unit);
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(
        worst, std::abs(error[i] - a[i]) / (unit[i] * (1.0 + 3.0 * 255.0 * 0x1p-24) + 0x1p-21));
  }
  CHECK(worst <= 1.0);
}

// The textbook in double: a window of whole gradients, newest first, whose ages are places in it.
struct Dense {
  RuleSpec spec;
  double lr;
  std::vector<double> w;
  std::vector<double> bound;  // how far fp32 may be off by now
  std::deque<Row> window = {};

  void step(int t, const Row& newest) {
    window.push_front(newest);
    if (window.size() > static_cast<std::size_t>(spec.window)) window.pop_back();
    std::vector<double> z1(w.size(), 0.0), z2 = z1, size = z1;
    for (std::size_t age = 0; age < window.size(); ++age) {
      const bool study = spec.window_form == WindowForm::kStudy;
      const int exponent =
          study ? (t - static_cast<int>(age)) % spec.window : static_cast<int>(age);
      const double b1 = std::pow(spec.beta1, exponent), b2 = std::pow(spec.beta2, exponent);
      for (const auto& [i, v] : window[age]) {
        z1[i] += b1 * v;
        z2[i] += b2 * v * v;
        size[i] += b1 * std::abs(v);
      }
    }
    const auto rows = static_cast<double>(window.size());
    const double mass = spec.window_form == WindowForm::kCorrected ? rows : t;
    const double c1 = 1 - std::pow(spec.beta1, mass), c2 = 1 - std::pow(spec.beta2, mass);
    const double twice = spec.window_form == WindowForm::kStudy ? std::sqrt(c2) / c1 : 1.0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double per =
          twice * (1 - spec.beta1) / c1 / (std::sqrt((1 - spec.beta2) / c2 * z2[i]) + spec.eps);
      const double decay = spec.weight_decay * w[i];
      // fp32: a term of z1 is rounded twice and a sum of them once for each, relative to their
      // magnitudes; those of z2 once more, but its root takes half of that; then root, sum with
      // eps, two factors and lr. The decay's factor, product and sum are 4 more, and w is rounded
      // once. Errors of w do not grow, as 1 - lr decay is below 1.
      bound[i] += 0x1p-24 * (lr * ((1.5 * rows + 12.0) * size[i] * per + 4.0 * std::abs(decay)) +
                             std::abs(w[i]) + lr * (size[i] * per + std::abs(decay)));
      w[i] -= lr * (z1[i] * per + decay);
    }
  }
};

void compare_with_dense(const Shape& shape, const GroupSpec& group) {
  CAPTURE(shape.str());
  CAPTURE(group.rule.feedback_bits);
  CAPTURE(group.rule.weight_decay);
  CAPTURE(static_cast<int>(group.rule.window_form));
  Single single(shape, {}, group);
  const State state(single, group.rule);
  Dense dense{group.rule, group.lr, decoded(single.w().storage()),
              std::vector<double>(state.size, 0.0)};
  for (int t = 1; t <= 100; ++t) {
    CAPTURE(t);
    const std::vector<float> grad = numbers(shape.size(), static_cast<std::uint32_t>(t));
    std::vector<double> a = state.feedback();
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += static_cast<double>(grad[i]);
    single.step(grad);
    const Row newest = state.newest(t);
    check_selection(state, newest, a);
    check_feedback(state, newest, a);
    dense.step(t, newest);
    const std::vector<double> w = decoded(single.w().storage());
    double worst = 0.0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      worst = std::max(worst, std::abs(w[i] - dense.w[i]) / dense.bound[i]);
    }
    CHECK(worst <= 1.0);
  }
}

}  // namespace

TEST_CASE("microadam: window, bias and feedback equal a dense recomputation for 100 steps") {
  for (WindowForm form : {WindowForm::kCorrected, WindowForm::kPublished, WindowForm::kStudy}) {
    for (int bits : {0, 2, 3, 4, 5, 7, 8}) {
      GroupSpec group = micro_group(bits, form);
      compare_with_dense({203}, group);  // 21 are kept; the last bucket has 11
      group.rule.weight_decay = 0.5;
      compare_with_dense({203}, group);
    }
  }
}

TEST_CASE(
    "microadam: the same with several runs in a row, several rows in a run, and ragged ends") {
  for (WindowForm form : {WindowForm::kCorrected, WindowForm::kPublished}) {
    for (int bits : {0, 3}) {
      GroupSpec group = micro_group(bits, form);
      group.rule.density = 0.01;
      group.rule.window = 10;
      group.rule.bucket = 64;
      group.rule.weight_decay = 0.1;
      compare_with_dense({2, 8500}, group);  // 3840, 3840 and 820 of each row
      compare_with_dense({31, 300}, group);  // 13, 13 and 5 rows
      compare_with_dense({4097}, group);     // 3840 and 257
    }
  }
}

TEST_CASE("microadam: a constant gradient moves by lr, whatever the age of the window") {
  // Every row holds the coordinate: m^ / sqrt(v^) is 1 in the corrected form and grows as the
  // published one divides by a mass that the window does not have: sqrt((1 - .999^t) / (1 -
  // .999^10)) (1 - .9^10) / (1 - .9^t) for t >= 10.
  for (WindowForm form : {WindowForm::kCorrected, WindowForm::kPublished}) {
    GroupSpec group;
    group.rule.kind = RuleKind::kMicroadam;
    group.rule.density = 1.0;
    group.rule.window_form = form;
    group.lr = 1e-3;
    Single single({8}, {}, group);
    double before = 0.0;
    for (int t = 1; t <= 300; ++t) {
      before = decoded(single.w().storage())[0];
      single.step(std::vector<float>(8, 0.5f));
    }
    const double move = (before - decoded(single.w().storage())[0]) / 1e-3;
    const double published = std::sqrt((1 - std::pow(0.999, 300)) / (1 - std::pow(0.999, 10))) *
                             (1 - std::pow(0.9, 10)) / (1 - std::pow(0.9, 300));
    // w is about 0.5: one rounding of it is 2^-25 / 1e-3 of the step.
    CHECK(move == doctest::Approx(form == WindowForm::kCorrected ? 1.0 : published).epsilon(1e-3));
  }
}

TEST_CASE("microadam: everything that ever came in is in the window, the past or the feedback") {
  // Sum of gradients = sum of all values ever kept + the feedback now, up to the rounding of codes.
  GroupSpec group = micro_group(8, WindowForm::kCorrected);
  group.rule.window = 200;
  const std::int64_t n = 64;
  Single single({n}, {}, group);
  std::vector<double> sum(static_cast<std::size_t>(n), 0.0);
  for (int t = 1; t <= 200; ++t) {
    const std::vector<float> grad = numbers(n, static_cast<std::uint32_t>(t));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(grad[i]);
    single.step(grad);
  }
  const auto index = single.plane<std::uint16_t>("w/microadam/index");
  const auto value = single.plane<std::uint16_t>("w/microadam/value");
  std::vector<double> kept = State(single, group.rule).feedback();
  for (std::size_t j = 0; j < index.size(); ++j) kept[index[j]] += from_bf16(value[j]);
  // Stochastic codes are unbiased: 200 errors of a uniform grid of unit <= 16 / 255 (residuals stay
  // within +-8 here) have a standard deviation of at most sqrt(200) unit / 2; five of them.
  const double bound = 5.0 * std::sqrt(200.0) * (16.0 / 255.0) / 2.0;
  for (std::size_t i = 0; i < sum.size(); ++i) CHECK(std::abs(kept[i] - sum[i]) <= bound);
}

TEST_CASE("microadam: equal magnitudes go to the lower index, in every run") {
  GroupSpec group = micro_group(0, WindowForm::kCorrected);
  Single single({3, 5000}, {}, group);  // runs of 3840 and 1160: 384 and 116 kept in each row
  std::vector<float> grad(15000, 0.25f);
  single.step(grad);
  const auto index = single.plane<std::uint16_t>("w/microadam/index");
  REQUIRE(index.size() == 4 * 3 * 500);
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t j = 0; j < 500; ++j) {
      CHECK(index[row * 500 + j] == (j < 384 ? j : j - 384));
    }
  }
}

TEST_CASE("microadam: the largest are told apart by their last bits") {
  Single single({1, 1000}, {}, micro_group(0, WindowForm::kCorrected));  // 100 are kept
  std::vector<float> grad;
  for (int i = 0; i < 1000; ++i) {
    // Fifty of the largest; of five hundred others that are equal, the first fifty.
    grad.push_back(i % 20 == 0 ? 1.0f + 0x1p-22f : i % 2 == 1 ? 1.0f + 0x1p-23f : 1.0f);
  }
  std::vector<std::uint16_t> expected;
  for (int i = 0, others = 0; i < 1000; ++i) {
    if (i % 20 == 0 || (i % 2 == 1 && others++ < 50)) {
      expected.push_back(static_cast<std::uint16_t>(i));
    }
  }
  single.step(grad);
  const auto index = single.plane<std::uint16_t>("w/microadam/index");
  REQUIRE(expected.size() == 100);
  CHECK(std::vector<std::uint16_t>(index.begin(), index.begin() + 100) == expected);
}

TEST_CASE("microadam: bytes of state") {
  GroupSpec group;
  group.rule.kind = RuleKind::kMicroadam;
  const ParameterSpec spec{"w", Role::kWeight, {4096, 4096}, {}, {}};
  const double per = static_cast<double>(Optimizer::state_bytes(spec, group)) / (4096.0 * 4096.0);
  // .5 + 4 / 64 + 10 * 4 * ceil(40.96) / 4096
  CHECK(per == doctest::Approx(0.5 + 4.0 / 64.0 + 40.0 * 41.0 / 4096.0));
  CHECK(per <= 0.97);
}

TEST_CASE("microadam: settings outside their ranges are refused by name") {
  const auto refused = [](const std::function<void(RuleSpec&)>& change) {
    RuleSpec spec;
    spec.kind = RuleKind::kMicroadam;
    change(spec);
    return refusal([&] { make_rule(spec); });
  };
  CHECK(refused([](RuleSpec&) {}).empty());
  CHECK(refused([](RuleSpec& s) { s.density = 0.0; }).find("density = 0 is outside") !=
        std::string::npos);
  CHECK(refused([](RuleSpec& s) { s.density = 1.5; }).find("density = 1.5") != std::string::npos);
  CHECK(refused([](RuleSpec& s) { s.density = NAN; }).find("density") != std::string::npos);
  CHECK(refused([](RuleSpec& s) { s.window = 0; }).find("window = 0") != std::string::npos);
  for (int bits : {-1, 1, 9}) {
    const std::string sentence = "microadam: feedback_bits = " + std::to_string(bits) +
                                 " is neither 0 (no error feedback) nor 2 to 8";
    CHECK(refused([&](RuleSpec& s) { s.feedback_bits = bits; }) == sentence);
    // The same from a recipe.
    const std::string set = "weight.feedback_bits=" + std::to_string(bits);
    CHECK_THROWS_WITH_AS(load_recipe("microadam", {set}),
                         ("recipe 'microadam', [weight]: " + sentence).c_str(), Error);
  }
  CHECK(refused([](RuleSpec& s) { s.bucket = 1; }).find("bucket = 1") != std::string::npos);
  CHECK(refused([](RuleSpec& s) { s.beta1 = 1.0; }).find("beta1 = 1") != std::string::npos);
  CHECK(refused([](RuleSpec& s) { s.beta2 = -0.1; }).find("beta2") != std::string::npos);
  CHECK(refused([](RuleSpec& s) { s.eps = -1e-8; }).find("eps = -1e-08") != std::string::npos);
}

}  // namespace tritgrad::test::test_microadam
