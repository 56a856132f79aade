// Named parameters of a model and the store that owns them.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/storage.h"
#include "engine/lazy_gradient.h"
#include "engine/names.h"
#include "engine/tensor.h"

namespace tritgrad {

// The purpose of a parameter; recipes choose formats and rules by role.
enum class Role {
  kWeight,     // a matrix [outputs x inputs]
  kScale,      // scales of a ternary matrix [outputs x groups]
  kBias,       // [n]
  kNorm,       // gains and biases of normalisation layers [n]
  kEmbedding,  // vectors of tokens, and the head of a language model [vocabulary x width]
  kStatistic,  // running statistics: read at inference, not trained
};

inline constexpr Names<Role, 6> kRoleNames{"role",
                                           {{{Role::kWeight, "weight"},
                                             {Role::kScale, "scale"},
                                             {Role::kBias, "bias"},
                                             {Role::kNorm, "norm"},
                                             {Role::kEmbedding, "embedding"},
                                             {Role::kStatistic, "statistic"}}}};
inline std::string_view role_name(Role role) { return kRoleNames.name(role); }
inline Category role_category(Role role) {
  return role == Role::kScale ? Category::kScales : Category::kWeights;
}

// The numbers that a parameter begins with.
struct Initial {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  // kConstant: the value; kUniform: on [-amount, amount); kNormal: standard deviation.
  float amount = 0.0f;
};

// Running statistics move by this much of the distance to what a batch shows.
inline constexpr float kAverageMomentum = 0.1f;

// A parameter before any memory is allocated.
struct ParameterSpec {
  std::string name;
  Role role = Role::kWeight;
  Shape shape;
  FormatSpec format;
  Initial initial;
  // Its gradient is added up in memory from parts of a batch, never offered as a source.
  bool gradient_in_parts = false;
  // Its gradient is the first to be made and the last to be complete, as of an embedding that is
  // the head, too: it exists beside each of the others.
  bool gradient_waits = false;

  bool trainable() const { return role != Role::kStatistic; }
  // Whether its elements count as parameters of the model. Scales do not: they are part of how a
  // weight is stored, and the count must be equal for all recipes.
  bool counted() const { return trainable() && role != Role::kScale; }
};

class Parameter {
 public:
  // Allocates the storage and fills it from `initial`; numbers are keyed by (seed, name, element).
  // Without a seed it stays as allocated, all bytes 0, for a checkpoint to be loaded into.
  Parameter(ParameterSpec spec, std::optional<std::uint64_t> seed);

  const ParameterSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  const Shape& shape() const { return spec_.shape; }
  Storage& storage() { return storage_; }
  const Storage& storage() const { return storage_; }
  std::uint32_t stream() const { return stream_; }

  // dL/dvalue, [shape]; null while no fp32 gradient is held. Owned by the tape (released gradients,
  // and while a bf16 gradient is being made) or by this parameter (kept in fp32). Who changes what
  // backward has left there must say so by add_to_gradient_bound().
  Tensor grad;
  // A gradient that is complete and is computed when it is read; null: there is none. The tape owns
  // it, during backward.
  const LazyGradient* lazy_gradient = nullptr;
  // The number of uses on the tape whose backward step has not run yet; see Tape.
  int pending_uses = 0;

  // Moves a running statistic (fp32) towards what a batch shows [shape], unless that is not
  // finite; or, while `observed` is set, notes it there and leaves the statistic as it is.
  void move_average(const float* batch);
  float* observed = nullptr;

  // Gives the gradient memory of its own, fp32 or bf16, into which backward accumulates from now
  // on.
  void keep_gradient(FormatKind format = FormatKind::kFp32);
  bool gradient_is_kept() const { return kept_gradient_.has_value(); }
  // Whoever writes to its bytes gets them from share_gradient().
  const std::optional<Storage>& kept_gradient() const { return kept_gradient_; }
  // Returns the kept gradient where it is in bf16, as is each that is complete while `grad` is
  // null; else null.
  const std::uint16_t* bf16_gradient() const;
  // Returns the memory of the kept gradient, for others to write to at any time.
  std::span<std::byte> share_gradient();
  // Adds `grad`, which is complete now, to what is kept. (An fp32 gradient is already there.)
  void collect_gradient();
  void zero_gradient();
  // Returns elements [first, first + n) of a gradient in memory; they may lie in `out`.
  const float* read_gradient(std::int64_t first, std::int64_t n, float* out) const;
  // Says that what is about to be added to the gradient is at most `bound` in magnitude, and no
  // NaN; infinite or NaN where nothing is known.
  void add_to_gradient_bound(double bound) { gradient_bound_ += bound; }
  void forget_gradient_bound() { gradient_bound_ = 0.0; }
  double gradient_bound() const { return gradient_bound_; }  // 0: nothing was said, or of zeros
  // Whether all of it is finite by what was said of it or collect_gradient() has seen, so that it
  // need not be looked through. Never of one that others write to.
  bool gradient_is_known_finite() const;
  // Whether the whole gradient is finite, whatever form it has; there must be one.
  bool gradient_is_finite() const;
  // Whether those elements are finite, as they lie.
  bool gradient_is_finite(std::int64_t first, std::int64_t n) const;
  bool has_gradient() const { return grad || gradient_is_kept() || lazy_gradient != nullptr; }

 private:
  ParameterSpec spec_;
  std::uint32_t stream_;
  Storage storage_;
  std::optional<Storage> kept_gradient_;
  std::span<std::byte> kept_bytes_;  // of kept_gradient_
  double gradient_bound_ = 0.0;
  bool known_finite_ = false;
  bool shared_ = false;
};

class ParameterStore {
 public:
  // Adds a parameter; the name must be new. References stay valid.
  Parameter& add(ParameterSpec spec, std::optional<std::uint64_t> seed);
  Parameter& find(std::string_view name);

  auto begin() { return parameters_.begin(); }
  auto end() { return parameters_.end(); }
  auto begin() const { return parameters_.begin(); }
  auto end() const { return parameters_.end(); }
  std::size_t size() const { return parameters_.size(); }

  // Returns the number of trainable elements, without the scales of ternary groups.
  std::int64_t parameter_count() const;
  // Keeps the gradients of all trainable parameters, one buffer for each.
  void keep_gradients(FormatKind format = FormatKind::kFp32);
  void zero_gradients();

 private:
  std::deque<Parameter> parameters_;
};

}  // namespace tritgrad
