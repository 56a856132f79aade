// A convolution in integers, batch norm, rectifier and max pooling as one op: against their
// definition in double within derived bounds, and the same bits on every instruction set and for
// any number of threads.
#include <algorithm>
#include <cmath>
#include <string>

#include "engine/check.h"
#include "engine/kernels/kernels.h"
#include "engine/memory/parallel.h"
#include "ops/conv_norm.h"
#include "ops/pool.h"
#include "tests/support/convolved.h"
#include "tests/support/support_files.h"

namespace tritgrad::test::test_conv_norm {
namespace {

struct NormCase {
  Convolved c;
  Pool pool = Pool::kNo;
};

// Odd sizes, one channel to 130, images of one pixel, one line and one column, windows larger than
// the image; pooling that drops a line and a column, lines of more than one stretch of pixels.
const std::vector<NormCase> kCases = {
    {{{5, 7, 1}, 3, 3, 4}},
    {{{5, 7, 3}, 2, 3, 33}, Pool::kYes},
    {{{1, 1, 6}, 9, 3, 5}},
    {{{1, 9, 2}, 2, 3, 3}},
    {{{8, 1, 3}, 2, 5, 2}},
    {{{2, 3, 4}, 3, 7, 6}, Pool::kYes},
    {{{4, 4, 5}, 2, 1, 70}, Pool::kYes},
    {{{3, 70, 8}, 2, 3, 17}, Pool::kYes},
    {{{8, 8, 64}, 3, 3, 64}, Pool::kYes},
    {{{6, 5, 130}, 2, 3, 67}},
    {{{4, 6, 31}, 2, 3, 130}, Pool::kYes},
};

// The parameters of one op, and what it leaves.
class NormLayer {
 public:
  NormLayer(const NormCase& c, FormatKind kind, std::uint32_t salt)
      : case_(c),
        weight_(make_parameter("w", Role::kWeight, {c.c.outputs, c.c.inputs()}, spec_of(kind), 1.5f,
                               salt)),
        scale_(parameter("s", Role::kScale, {c.c.outputs, 1}, 0.1f, salt + 1)),
        gain_(parameter("g", Role::kNorm, {c.c.outputs}, 1.0f, salt + 2)),
        bias_(parameter("b", Role::kNorm, {c.c.outputs}, 1.0f, salt + 3)),
        mean_(parameter("m", Role::kStatistic, {c.c.outputs}, 0.0f, salt + 4)),
        variance_(parameter("v", Role::kStatistic, {c.c.outputs}, 0.0f, salt + 5)) {}

  ImageVar run(Tape& tape, const ImageVar& x) {
    return conv_norm(tape, x, {case_.c.size}, weight_, &scale_, norm(), case_.pool);
  }
  Var run_floats(Tape& tape, const ImageVar& x) {
    return conv_norm_floats(tape, x, {case_.c.size}, weight_, &scale_, norm(), case_.pool);
  }
  BatchNormParameters norm() { return {&gain_, &bias_, &mean_, &variance_}; }
  Parameter& weight() { return weight_; }
  Parameter& scale() { return scale_; }
  Parameter& gain() { return gain_; }
  Parameter& bias() { return bias_; }
  const Parameter& mean() const { return mean_; }
  const Parameter& variance() const { return variance_; }
  const NormCase& of() const { return case_; }

 private:
  static Parameter parameter(const char* name, Role role, const Shape& shape, float size,
                             std::uint32_t salt) {
    return make_parameter(name, role, shape, spec_of(FormatKind::kFp32), size, salt);
  }

  NormCase case_;
  Parameter weight_, scale_, gain_, bias_, mean_, variance_;
};

ImageShape shape_of(const NormCase& c) {
  const ImageShape image{c.c.image.height, c.c.image.width, c.c.outputs};
  return c.pool == Pool::kYes ? pooled(image) : image;
}

// Rounds sums of products with images of these scales as levels are (ops/products/image_levels.h).
void round_to_levels(const Convolved& c, const std::vector<float>& x_scales,
                     std::vector<double>& v) {
  const double unit = std::exp2(shift_for(c.inputs()));
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::size_t image = i / static_cast<std::size_t>(c.pixels() * c.outputs);
    const double sum = std::nearbyint(v[i] / double{x_scales[image]});
    v[i] = double{x_scales[image]} * unit * std::floor(sum / unit + 0.5);
  }
}

// All by the definition, in double, of one layer with numbers as operands.
class DirectNorm {
 public:
  std::vector<double> y, dx, dscale, dgain, dbias;
  std::vector<double> mean, unbiased;
  std::vector<double> dx_error;  // the half unit that dz E is rounded by, of each image
  // Of dz rounded to codes as the op does it, without E; and what that may be off by.
  std::vector<double> dw, dw_error;

  // `x_scales` are those of the images; dy is empty or of y's size.
  DirectNorm(NormLayer& layer, const std::vector<double>& x, const std::vector<float>& x_scales,
             const std::vector<float>& dy)
      : c_(layer.of().c),
        outputs_(static_cast<std::size_t>(c_.outputs)),
        per_image_(static_cast<std::size_t>(c_.pixels()) * outputs_),
        n_(static_cast<double>(c_.rows())),
        trits_(decoded(layer.weight().storage())),
        e_(decoded(layer.scale().storage())),
        gain_(decoded(layer.gain().storage())),
        bias_(decoded(layer.bias().storage())),
        v_(Direct<double>(c_, x, trits_, {}).y) {
    round_to_levels(c_, x_scales, v_);
    normalize();
    choose_largest(layer.of());
    if (dy.empty()) return;
    const std::vector<double> dz = backward(x, dy);
    find_units(x_scales);
    round_for_weights(x, x_scales, dz);
  }

 private:
  void normalize() {
    const auto rows = static_cast<std::size_t>(c_.rows());
    inverse_.resize(outputs_);
    normal_.resize(v_.size());
    mean.resize(outputs_);
    unbiased.resize(outputs_);
    for (std::size_t o = 0; o < outputs_; ++o) {
      double sum = 0.0, squares = 0.0;
      for (std::size_t r = 0; r < rows; ++r) sum += e_[o] * v_[r * outputs_ + o];
      mean[o] = sum / n_;
      for (std::size_t r = 0; r < rows; ++r) {
        squares += std::pow(e_[o] * v_[r * outputs_ + o] - mean[o], 2);
      }
      unbiased[o] = squares / (n_ - 1.0);
      inverse_[o] = 1.0 / std::sqrt(squares / n_ + double{kBatchNormEps});
      for (std::size_t r = 0; r < rows; ++r) {
        normal_[r * outputs_ + o] = (e_[o] * v_[r * outputs_ + o] - mean[o]) * inverse_[o];
      }
    }
  }

  // Notes for each number of y the row of z that wins.
  void choose_largest(const NormCase& norm_case) {
    const ImageShape out = shape_of(norm_case);
    const bool pools = norm_case.pool == Pool::kYes;
    for (std::int64_t r = 0; r < c_.images * out.pixels(); ++r) {
      const std::int64_t image = r / out.pixels(), line = r % out.pixels() / out.width;
      const std::int64_t column = r % out.width;
      for (std::size_t o = 0; o < outputs_; ++o) {
        std::size_t best = 0;
        double largest = -1e300;
        for (int i = 0; i < (pools ? 4 : 1); ++i) {
          const std::int64_t first_line = image * c_.image.height + 2 * line;
          const std::int64_t at =
              pools ? (first_line + i / 2) * c_.image.width + 2 * column + i % 2 : r;
          const auto index = static_cast<std::size_t>(at) * outputs_ + o;
          const double u = gain_[o] * normal_[index];
          if (u > largest) best = index, largest = u;
        }
        from_.push_back(best);
        y.push_back(std::max(0.0, largest + bias_[o]));
      }
    }
  }

  // Returns dz.
  std::vector<double> backward(const std::vector<double>& x, const std::vector<float>& dy) {
    std::vector<double> dnormal(v_.size());
    most_.resize(static_cast<std::size_t>(c_.images) * outputs_);
    dgain.resize(outputs_);
    dbias.resize(outputs_);
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (y[i] <= 0.0) continue;
      double& largest = most_[from_[i] / per_image_ * outputs_ + i % outputs_];
      largest = std::max(largest, std::abs(double{dy[i]}));
      dnormal[from_[i]] += double{dy[i]};
      dbias[i % outputs_] += double{dy[i]};
      dgain[i % outputs_] += double{dy[i]} * normal_[from_[i]];
    }
    std::vector<double> dz(v_.size()), dze(v_.size());
    dscale.resize(outputs_);
    for (std::size_t i = 0; i < v_.size(); ++i) {
      const std::size_t o = i % outputs_;
      dz[i] = gain_[o] * inverse_[o] * (dnormal[i] - dbias[o] / n_ - normal_[i] * dgain[o] / n_);
      dze[i] = dz[i] * e_[o];
      dscale[o] += dz[i] * v_[i];
    }
    dx = Direct<double>(c_, x, trits_, dze).dx;
    return dz;
  }

  // Codes are 127 for the largest that dz can be in an image: with E of any output for dx, with the
  // scale of x's image, of one output and any image, for dW.
  void find_units(const std::vector<float>& x_scales) {
    dx_error.assign(static_cast<std::size_t>(c_.images), 0.0);
    dw_unit_.assign(outputs_, 0.0);
    most_normal_.assign(outputs_, 0.0);
    for (std::size_t image = 0; image < dx_error.size(); ++image) {
      for (std::size_t o = 0; o < outputs_; ++o) {
        double largest_normal = 0.0;
        for (std::size_t p = 0; p < static_cast<std::size_t>(c_.pixels()); ++p) {
          largest_normal =
              std::max(largest_normal, std::abs(normal_[image * per_image_ + p * outputs_ + o]));
        }
        const double bound = std::abs(gain_[o] * inverse_[o]) *
                             (most_[image * outputs_ + o] + std::abs(dbias[o] / n_) +
                              largest_normal * std::abs(dgain[o] / n_));
        dx_error[image] = std::max(dx_error[image], bound * std::abs(e_[o]) / 254.0);
        dw_unit_[o] = std::max(dw_unit_[o], bound * double{x_scales[image]} / 127.0);
        most_normal_[o] = std::max(most_normal_[o], largest_normal);
      }
    }
  }

  // Returns how far what the op rounds to codes of an output may be from what is rounded here, as a
  // part of the largest that it can be.
  //
  // With u = 2^-24, D the largest |dy|, g the mean of dy z^, |g| <= D as z^ has the mean square 1,
  // Z the largest |z^|, and M = |mean z| / std: z^ has three roundings, and that of the mean, which
  // is M u. So g is off by u |g| + D u (3 + M), and dz / factor = dy - mean dy - z^ g, whose terms
  // are all in the bound D + |mean dy| + Z |g|, by (8 + M + Z (3 + M)) u times that. The bound
  // itself is off as much; factor, its product, the scale of x's image and 127 / largest add five
  // roundings to either. That M becomes 3 + M leaves room for u^2.
  double rounding(std::size_t o) const {
    const double m = std::abs(mean[o] * inverse_[o]);
    return (26.0 + 2.0 * (1.0 + most_normal_[o]) * (3.0 + m)) * 0x1p-24;
  }

  // Codes are known, but for those of numbers so near to the middle between two that roundings to
  // float decide: these may be off by one. The unit has the roundings of the bound, and a number of
  // dW those of its sum and of two products.
  void round_for_weights(const std::vector<double>& x, const std::vector<float>& x_scales,
                         const std::vector<double>& dz) {
    std::vector<double> x_codes(x.size()), x_sizes(x.size()), codes(dz.size()), doubts(dz.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t image = i / static_cast<std::size_t>(c_.image.size());
      x_codes[i] = std::nearbyint(x[i] / double{x_scales[image]});
      x_sizes[i] = std::abs(x_codes[i]);
    }
    for (std::size_t i = 0; i < dz.size(); ++i) {
      const std::size_t o = i % outputs_;
      if (dw_unit_[o] == 0.0) continue;  // the rectifier leaves nothing of dy
      const double code = dz[i] * double{x_scales[i / per_image_]} / dw_unit_[o];
      codes[i] = std::nearbyint(code);
      const double to_middle = 0.5 - std::abs(code - codes[i]);
      doubts[i] = to_middle <= 127.0 * rounding(o) ? 1.0 : 0.0;
    }
    dw = Direct<double>(c_, x_codes, trits_, codes).dw;
    dw_error = Direct<double>(c_, x_sizes, trits_, doubts).dw;
    for (std::size_t i = 0; i < dw.size(); ++i) {
      const std::size_t o = i / static_cast<std::size_t>(c_.inputs());
      dw[i] *= dw_unit_[o];
      dw_error[i] *= dw_unit_[o];
      dw_error[i] += (rounding(o) + 4.0 * 0x1p-24) * (std::abs(dw[i]) + dw_error[i]);
    }
  }

  const Convolved& c_;
  std::size_t outputs_, per_image_;
  double n_;  // numbers of an output
  std::vector<double> trits_, e_, gain_, bias_;
  std::vector<double> v_;  // the sums, as levels have them
  std::vector<double> inverse_, normal_;
  std::vector<std::size_t> from_;
  std::vector<double> most_;     // the largest of dy behind the rectifier, of each image and output
  std::vector<double> dw_unit_;  // what a code of dz times the scale of x's image counts
  std::vector<double> most_normal_;
};

// Images of whole numbers with 127 as the largest magnitude, which rounding leaves as they are.
std::vector<float> whole_images(const Convolved& c) {
  std::vector<float> x = numbers(c.images * c.image.size(), 3);
  for (float& v : x) v = std::nearbyint(v * 126.0f);
  for (std::int64_t i = 0; i < c.images; ++i) {
    x[static_cast<std::size_t>(i * c.image.size() + i % c.image.size())] = 127.0f;
  }
  return x;
}

ImageVar images_of(Tape& tape, const Convolved& c, std::vector<float>& x) {
  return quantize_images(tape, {x.data(), {c.images, c.image.size()}}, c.image, {c.size});
}

std::vector<double> numbers_of(const BorderedImages& x) {
  std::vector<double> all;
  for (std::int64_t image = 0; image < x.images; ++image) {
    for (std::int64_t line = 0; line < x.image.height; ++line) {
      const std::int8_t* codes = x.line(image, line);
      for (std::int64_t i = 0; i < x.image.width * x.image.channels; ++i) {
        all.push_back(double{x.scales[image]} * codes[i]);
      }
    }
  }
  return all;
}

std::vector<double> numbers_of(const ImageLevels& x) {
  check(x.levels != nullptr, "there are no levels");
  std::vector<double> all;
  for (std::int64_t i = 0; i < x.images * x.image.size(); ++i) {
    all.push_back(double{x.factors[i / x.image.size()]} * x.levels[i]);
  }
  return all;
}

void check_near(const std::vector<double>& actual, const std::vector<double>& expected,
                const std::function<double(std::size_t)>& bound) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    REQUIRE(std::abs(actual[i] - expected[i]) <= bound(i));
  }
}

std::vector<double> values(const Tensor& t) { return {t.values().begin(), t.values().end()}; }

// A few roundings to float of numbers of that size.
double slack(double size) { return size * 0x1p-16; }

}  // namespace

TEST_CASE("conv_norm: forward and all gradients are those of convolution, norm and pooling") {
  for (const NormCase& c : kCases) {
    CAPTURE(c.c.image.height);
    CAPTURE(c.c.image.channels);
    CAPTURE(c.c.outputs);
    NormLayer layer(c, FormatKind::kLatent8, 5);
    Tape tape;
    std::vector<float> pixels = whole_images(c.c);
    const ImageVar x = images_of(tape, c.c, pixels);
    const Var y = layer.run_floats(tape, x);
    const ImageShape out = shape_of(c);
    const std::vector<float> dy = numbers(c.c.images * out.size(), 4);
    const std::vector<float> scales(x.images.scales, x.images.scales + c.c.images);
    const DirectNorm direct(layer, numbers_of(x.images), scales, dy);
    check_near(values(y.value), direct.y, [&](std::size_t i) { return slack(8.0 + direct.y[i]); });
    const auto outputs = static_cast<std::size_t>(c.c.outputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      // The running statistics began as 0; a tenth of the batch's is in them.
      const double size = std::sqrt(direct.unbiased[o]) + std::abs(direct.mean[o]);
      CHECK(std::abs(decoded(layer.mean().storage())[o] - 0.1 * direct.mean[o]) <= slack(size));
      CHECK(std::abs(decoded(layer.variance().storage())[o] - 0.1 * direct.unbiased[o]) <=
            slack(size * size));
    }
    const Var loss = loss_with_gradient(tape, y, dy);
    const auto rows = static_cast<double>(c.c.rows());
    tape.backward(loss, [&](Parameter& p) {
      CAPTURE(p.name());
      const std::vector<double> grad = values(p.grad);
      // Sums of as many products of numbers below 8.
      if (p.name() == "g") {
        check_near(grad, direct.dgain, [&](std::size_t) { return slack(8.0 * rows); });
      } else if (p.name() == "b") {
        check_near(grad, direct.dbias, [&](std::size_t) { return slack(8.0 * rows); });
      } else if (p.name() == "s") {
        check_near(grad, direct.dscale, [&](std::size_t o) {
          return slack(8.0 * rows) * (1.0 + 1.0 / std::abs(decoded(layer.scale().storage())[o]));
        });
      } else {
        const std::vector<double> e = decoded(layer.scale().storage());
        std::vector<double> dw = direct.dw;
        const auto inputs = static_cast<std::size_t>(c.c.inputs());
        for (std::size_t i = 0; i < dw.size(); ++i) dw[i] *= e[i / inputs];
        check_near(grad, dw,
                   [&](std::size_t i) { return direct.dw_error[i] * std::abs(e[i / inputs]); });
      }
    });
  }
}

TEST_CASE("conv_norm: rounded to int8, and the gradient of what it reads within half a unit") {
  for (const NormCase& c : kCases) {
    CAPTURE(c.c.image.height);
    CAPTURE(c.c.image.channels);
    NormLayer first({{c.c.image, c.c.images, c.c.size, c.c.image.channels}}, FormatKind::kTrits, 9);
    NormLayer second(c, FormatKind::kTernary, 5);
    Tape tape;
    std::vector<float> pixels = whole_images(c.c);
    const ImageVar x = images_of(tape, c.c, pixels);
    const ImageVar h = first.run(tape, x);
    const Var y = second.run_floats(tape, h);
    const std::vector<float> dy = numbers(y.value.size(), 4);
    const std::vector<float> h_scales(h.images.scales, h.images.scales + c.c.images);
    // Codes are the norm's outputs, each image by its largest.
    const DirectNorm before(first, numbers_of(x.images),
                            std::vector<float>(x.images.scales, x.images.scales + c.c.images), {});
    check_near(numbers_of(h.images), before.y, [&](std::size_t i) {
      const auto image = i / static_cast<std::size_t>(c.c.image.size());
      return double{h_scales[image]} * 0.5 + slack(8.0 + before.y[i]);
    });
    const DirectNorm direct(second, numbers_of(h.images), h_scales, dy);
    const Var loss = loss_with_gradient(tape, y, dy);
    bool looked = false;
    tape.backward(loss, [&](Parameter& p) {
      if (&p != &second.weight()) return;
      looked = true;
      ImageLevels gradient = h.gradient;
      gradient.levels = reinterpret_cast<std::int16_t*>(h.var.grad().data);
      // Each number of dz is off by half a unit of its rest, a kFiner-th of dx_error, and by a few
      // roundings of what is at most 254 dx_error to float; and so may the last bits of the sum be.
      const double half = 1.0 / kFiner + 8.0 * 0x1p-24 * 254.0;
      const auto products = static_cast<double>(c.c.size * c.c.size * c.c.outputs);
      check_near(numbers_of(gradient), direct.dx, [&](std::size_t i) {
        const auto image = i / static_cast<std::size_t>(c.c.image.size());
        const double level = double{gradient.factors[image]} / 2.0;
        return half * direct.dx_error[image] * products + level + slack(1.0);
      });
      for (std::int64_t i = 0; i < gradient.images * gradient.image.size(); ++i) {
        const std::int64_t at =
            i / gradient.image.size() * gradient.image.channels + i % gradient.image.channels;
        REQUIRE(gradient.levels[i] >= gradient.least[at]);
        REQUIRE(gradient.levels[i] <= gradient.most[at]);
      }
    });
    CHECK(looked);
  }
}

namespace {

// Everything that two layers leave.
std::vector<std::vector<double>> all_of(const NormCase& c) {
  NormLayer first({{c.c.image, c.c.images, c.c.size, c.c.image.channels}}, FormatKind::kTrits, 9);
  NormLayer second(c, FormatKind::kLatent8, 5);
  Tape tape;
  std::vector<float> pixels = numbers(c.c.images * c.c.image.size(), 3);
  const ImageVar h = first.run(tape, images_of(tape, c.c, pixels));
  const Var y = second.run_floats(tape, h);
  std::vector<std::vector<double>> all = {numbers_of(h.images), values(y.value)};
  const std::vector<float> dy = numbers(y.value.size(), 4);
  const Var loss = loss_with_gradient(tape, y, dy);
  tape.backward(loss, [&](Parameter& p) { all.push_back(values(p.grad)); });
  for (const NormLayer* layer : {&first, &second}) {
    all.push_back(decoded(layer->mean().storage()));
    all.push_back(decoded(layer->variance().storage()));
  }
  return all;
}

}  // namespace

TEST_CASE("conv_norm: the same bits on every instruction set and for any number of threads") {
  const std::string before = kernels().name;
  for (const NormCase& c : kCases) {
    use_kernels("reference");
    set_thread_count(1);
    const auto expected = all_of(c);
    for (const KernelTables* table : supported_kernels()) {
      use_kernels(table->name);
      for (int threads : {1, 3}) {
        set_thread_count(threads);
        CAPTURE(table->name);
        CAPTURE(c.c.image.channels);
        CHECK(all_of(c) == expected);
      }
    }
  }
  set_thread_count(0);
  use_kernels(before.c_str());
}

TEST_CASE("conv_norm: an output of scale 0 has a gradient of its scale and weights") {
  const NormCase c{{{4, 4, 3}, 2, 3, 3}};
  NormLayer layer(c, FormatKind::kTrits, 5);
  encode_all(layer.scale().storage(), std::vector<float>{0.5f, 0.0f, -0.25f});
  Tape tape;
  std::vector<float> pixels = whole_images(c.c);
  const ImageVar x = images_of(tape, c.c, pixels);
  const Var y = layer.run_floats(tape, x);
  const std::vector<float> dy = numbers(y.value.size(), 4);
  const std::vector<float> scales(x.images.scales, x.images.scales + c.c.images);
  const DirectNorm direct(layer, numbers_of(x.images), scales, dy);
  const Var loss = loss_with_gradient(tape, y, dy);
  tape.backward(loss, [&](Parameter& p) {
    if (&p == &layer.weight()) {
      for (std::int64_t i = 0; i < c.c.inputs(); ++i) CHECK(p.grad.row(1)[i] == 0.0f);
    }
    if (&p != &layer.scale()) return;
    // It is the sum of trits times dW, which is rounded to float once more.
    const std::vector<double> trits = decoded(layer.weight().storage());
    double expected = 0.0, bound = 0.0;
    for (std::int64_t i = 0; i < c.c.inputs(); ++i) {
      const auto at = static_cast<std::size_t>(c.c.inputs() + i);
      expected += trits[at] * direct.dw[at];
      bound += std::abs(trits[at]) * direct.dw_error[at];
    }
    bound += 0x1p-24 * std::abs(expected);
    CHECK(std::abs(double{p.grad.data[1]} - expected) <= bound);
    CHECK(direct.dscale[1] != 0.0);
  });
}

TEST_CASE("conv_norm: what does not fit is refused with the shapes") {
  const NormCase c{{{2, 2, 2}, 2, 3, 3}};
  NormLayer layer(c, FormatKind::kTrits, 5);
  Tape tape;
  std::vector<float> pixels = whole_images(c.c);
  const ImageVar x = images_of(tape, c.c, pixels);
  CHECK(refusal([&] {
          conv_norm(tape, x, {5}, layer.weight(), &layer.scale(), layer.norm(), Pool::kNo);
        }) ==
        "conv_norm: 'w' has shape [3 x 18] but windows of 5 x 5 pixels of 2 channels have 50 "
        "numbers");
  CHECK(refusal([&] {
          conv_norm(tape, x, {3}, layer.weight(), nullptr, layer.norm(), Pool::kNo);
        }) == "conv_norm: 'w' is not multiplied in integers with one scale a row; use conv2d");
  CHECK(refusal([&] {
          quantize_images(tape, {pixels.data(), {2, 7}}, c.c.image, {3});
        }) ==
        "quantize_images: x has shape [2 x 7] but images of 2 x 2 pixels of 2 channels have 8 "
        "numbers");
}

}  // namespace tritgrad::test::test_conv_norm
