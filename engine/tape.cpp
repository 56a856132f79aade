#include "engine/tape.h"

namespace tritgrad {

Var Tape::variable(const Shape& shape, bool wants_grad) {
  Var var{recycled_or_new(shape), {}};
  var.note = new (arena_.allocate<ValueNote>(1)) ValueNote{wants_grad && recording()};
  return var;
}

Var Tape::without_value(const Shape& shape) {
  Var var{{nullptr, shape}, {}};
  var.note = new (arena_.allocate<ValueNote>(1)) ValueNote{recording()};
  return var;
}

Var Tape::take_over(const Var& x) {
  check(!recording(), "Tape::take_over: backward may need the value of shape ", x.shape().str(),
        "; make a new one");
  if (x.note == nullptr) return x;
  x.note->is_read = true;
  return {x.value, new (arena_.allocate<ValueNote>(1)) ValueNote};
}

void Tape::release(const Var& x) {
  if (x.note == nullptr) return;
  check(!x.note->released, "Tape::release: this value of shape ", x.shape().str(),
        " was released already");
  x.note->released = true;
  if (!x.note->is_read && x.value) recycled_.push_back(x.value);
}

// Returns memory that is large enough, and not much larger, of what is free from number `first` on;
// null if there is none.
Tensor Tape::take(std::vector<Tensor>& free, std::size_t first, const Shape& shape) {
  const std::int64_t size = shape.size();
  const auto fits = [&](const Tensor& memory) {
    return memory.size() >= size && memory.size() / 2 <= size;
  };
  const auto found =
      std::find_if(free.begin() + static_cast<std::ptrdiff_t>(first), free.end(), fits);
  if (found == free.end()) return {};
  const Tensor reused{found->data, shape};
  free.erase(found);
  return reused;
}

Tensor Tape::recycled_or_new(const Shape& shape) {
  const Tensor reused = take(recycled_, first_recycled_, shape);
  return reused ? reused : tensor(shape);
}

GradientTarget Tape::target(const Var& x) {
  if (x.grad()) return {x.grad(), false};
  x.note->gradient = recycled_or_new(x.shape());
  return {x.grad(), true};
}

GradientTarget Tape::target_in_place(const Var& x, const Var& y) {
  if (x.grad()) return {x.grad(), false};
  x.note->gradient = {std::exchange(y.note->gradient.data, nullptr), x.shape()};
  return {x.grad(), true};
}

Tensor Tape::grad_to(const Var& x) {
  const auto [grad, fresh] = target(x);
  if (fresh) grad.fill(0.0f);
  return grad;
}

Tensor Tape::grad_of(const Var& y) { return grad_to(y); }

void Tape::recycle(Tensor& gradient) {
  if (gradient) recycled_.push_back(std::exchange(gradient, {}));
}

void Tape::append(const Var& y, std::initializer_list<Var> reads,
                  std::initializer_list<Parameter*> parameters, void* closure,
                  void (*call)(void*)) {
  check(y.wants_grad(), "Tape::record: what the op produced wants no gradient");
  check(parameters.size() <= kMaxParameters, "Tape::record: ", parameters.size(),
        " parameters given, at most ", kMaxParameters, " supported");
  for (const Var& x : reads) {
    if (x.note == nullptr) continue;
    check(static_cast<bool>(x.value), "Tape::record: a value of shape ", x.shape().str(),
          " is to be read in backward, but has no memory");
    check(!x.note->released, "Tape::record: a value of shape ", x.shape().str(),
          " is to be read in backward, but was released");
    x.note->is_read = true;
  }
  Node node{y.note, closure, call, {}};
  std::copy(parameters.begin(), parameters.end(), node.parameters.begin());
  for (Parameter* parameter : parameters) {
    if (parameter != nullptr) ++parameter->pending_uses;
  }
  nodes_.push_back(node);
}

Tape::Place Tape::enter() {
  return {arena_.place(), std::exchange(first_recycled_, recycled_.size())};
}

void Tape::leave(const Place& before) {
  recycled_.resize(first_recycled_);
  first_recycled_ = before.first_recycled;
  arena_.go_back(before.memory);
}

void Tape::copy_result(const Var& result, const Var& y) {
  check(result.shape() == y.shape(), "Tape::segment: x has shape ", y.shape().str(),
        " and what is made of it ", result.shape().str(), "; equal shapes are needed");
  std::copy_n(result.value.data, y.value.size(), y.value.data);
}

// Until its segment is recorded, nobody may take a parameter for one whose last use was walked.
void Tape::hold(std::initializer_list<Parameter*> parameters) {
  if (!recording_) return;
  for (Parameter* parameter : parameters) {
    if (parameter == nullptr) continue;
    ++parameter->pending_uses;
    held_parameters_.push_back(parameter);
  }
}

// Records what a segment has computed, in the place of its node and of all behind it, which were
// walked. Returns the number of nodes then.
std::size_t Tape::record_again(std::size_t segment) {
  const Node node = nodes_[segment];
  nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(segment), nodes_.end());
  node.call(node.closure);
  return nodes_.size();
}

// Records the end of the walk through a segment, and enters it.
void Tape::begin_again(const Var& x, const Var& y, std::size_t held) {
  for (; held_parameters_.size() > held; held_parameters_.pop_back()) {
    --held_parameters_.back()->pending_uses;
  }
  const Tensor dy = grad_of(y);
  if (x.note != nullptr) x.note->released = false;  // its memory was kept for this
  const bool had_gradient = static_cast<bool>(x.grad());
  record(y, {}, {},
         [this, x, dy, had_gradient, before = enter()] { end_again(x, dy, had_gradient, before); });
}

void Tape::hand_down(const Var& y, const Var& result) {
  check(result.wants_grad(), "Tape::segment: what is made of x depends on no parameter");
  result.note->gradient = std::exchange(y.note->gradient, {});
}

// Leaves a segment, whose gradient lay in `memory`. A gradient of x that the segment has made must
// not go with it. Arguments are copies, as the closure that has them goes.
void Tape::end_again(Var x, Tensor memory, bool had_gradient, Place before) {
  const bool in_place = x.grad().data == memory.data;
  if (x.grad() && !had_gradient && !in_place) {
    std::copy_n(x.grad().data, memory.size(), memory.data);
    x.note->gradient.data = memory.data;
  }
  leave(before);
  if (x.grad().data != memory.data) recycled_.push_back(memory);
}

Tensor Tape::gradient(Parameter& parameter, double bound) {
  if (!parameter.grad) {
    if (!parameter.gradient_is_kept()) parameter.forget_gradient_bound();
    parameter.grad = take(free_gradients_, 0, parameter.shape());
    if (!parameter.grad) {
      parameter.grad = {gradients_.allocate<float>(parameter.shape().size()), parameter.shape()};
    }
    parameter.grad.fill(0.0f);
    ++lent_gradients_;
  }
  parameter.add_to_gradient_bound(bound);
  return parameter.grad;
}

bool Tape::offer_gradient(Parameter& parameter, const LazyGradient& source) {
  if (parameter.pending_uses > 1 || parameter.grad || parameter.gradient_is_kept()) return false;
  parameter.lazy_gradient = &source;
  return true;
}

// Whether its gradient lay in memory of a tape.
bool Tape::take_gradient(Parameter& parameter) {
  parameter.lazy_gradient = nullptr;
  const bool own =
      parameter.gradient_is_kept() && parameter.kept_gradient()->fp32_data() != nullptr;
  if (own || !parameter.grad) return false;
  parameter.grad = {};
  return true;
}

void Tape::release_gradient(Parameter& parameter) {
  const Tensor memory = parameter.grad;
  if (!take_gradient(parameter)) return;
  // The layers below reuse it: all as one where no gradient is waiting.
  free_gradients_.push_back(memory);
  if (--lent_gradients_ > 0) return;
  gradients_.reset();
  free_gradients_.clear();
}

void Tape::begin_backward(const Var& loss, float weight) {
  check(loss.value.size() == 1, "Tape::backward: the loss has shape ", loss.shape().str(),
        ", expected one element; reduce it first");
  check(loss.wants_grad(), "Tape::backward: the loss does not depend on any parameter");
  check(!walked_,
        "Tape::backward: this step was walked already; call reset() and record a new one");
  walked_ = true;
  *grad_to(loss).data = weight;
}

void Tape::backward(const Var& loss, float weight) {
  for_each_pending([](const Parameter& parameter) {
    check(parameter.gradient_is_kept(), "Tape::backward: parameter '", parameter.name(),
          "' does not keep its gradient; call keep_gradients() or pass on_ready");
  });
  backward(
      loss, [](Parameter&) {}, weight);
}

void Tape::forget_parameters() {
  for_each_pending([](Parameter& parameter) {
    parameter.pending_uses = 0;
    take_gradient(parameter);
  });
}

void Tape::reset() {
  forget_parameters();
  nodes_.clear();
  held_parameters_.clear();
  recycled_.clear();
  first_recycled_ = 0;
  free_gradients_.clear();
  lent_gradients_ = 0;
  in_segment_ = false;
  walked_ = false;
  arena_.reset();
  gradients_.reset();
  workspace_.reset();
}

}  // namespace tritgrad
