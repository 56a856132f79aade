// A convolution in integers, batch norm, rectifier and pooling by their definition, and a layer
// with operands to compare with it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/conv_norm.h"
#include "ops/pool.h"
#include "tests/support/convolved.h"

namespace tritgrad::test {

struct NormCase {
  Convolved c;
  Pool pool = Pool::kNo;
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

inline ImageShape shape_of(const NormCase& c) {
  const ImageShape image{c.c.image.height, c.c.image.width, c.c.outputs};
  return c.pool == Pool::kYes ? pooled(image) : image;
}

// Rounds sums of products with images of these scales as levels are (ops/products/image_levels.h).
inline void round_to_levels(const Convolved& c, const std::vector<float>& x_scales,
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
  // Of dz rounded to codes as the op does it, without E; and what that may be off by if the scales
  // of x are powers of two.
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
  // Z the largest |z^|, and M = |mean z| / std: z is exact where the scales of x are powers of two;
  // z^ has three roundings, and that of the mean, which is M u. So g is off by u |g| + D u (3 + M),
  // and dz / factor = dy - mean dy - z^ g, whose terms are all in the bound D + |mean dy| + Z |g|,
  // by (8 + M + Z (3 + M)) u times that. The bound itself is off as much; factor, its product, the
  // scale of x's image and 127 / largest add five roundings to either. That M becomes 3 + M leaves
  // room for u^2.
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

}  // namespace tritgrad::test
